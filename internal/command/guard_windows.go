package command

import (
	"io"
	"log/slog"
)

// Guard is nil on Windows, which kills the commands itself if this process is killed: see processgroup.Group.
type Guard struct{}

// StartGuard returns no Guard: none is needed.
func StartGuard(*slog.Logger, []string, ...string) (*Guard, error) { return nil, nil }

// Watch returns: there is no guard process.
func Watch(io.Reader) {}

// Close does nothing.
func (*Guard) Close() {}

func (*Guard) variable() string { return "" }
func (*Guard) begin()           {}
func (*Guard) fail()            {}
func (*Guard) add(int)          {}
func (*Guard) remove(int)       {}
