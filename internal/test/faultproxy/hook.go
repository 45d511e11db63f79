package faultproxy

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// Hook is a fault that a test has requested.
type Hook struct {
	kind  kind
	match func(args [][]byte) bool
	hits  chan struct{}
	done  chan struct{} // of a hold: closed by Release

	mu   sync.Mutex
	left int // how many more requests it meets; negative: no limit
}

type kind int

const (
	cutReply kind = iota
	cutRequest
	hold
)

// Await blocks until the fault has hit a request. Each call waits for one more hit.
func (h *Hook) Await(tb testing.TB) {
	tb.Helper()
	await.Receive(tb, h.hits, "a request meets this fault")
}

// take reports whether the fault hits this request, and counts the hit.
func (h *Hook) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 {
		return false
	}
	if h.left > 0 {
		h.left--
	}
	select {
	case h.hits <- struct{}{}:
	default: // more hits than the channel holds
	}
	return true
}

// Command returns a match for requests whose first word is one of names, in any case.
func Command(names ...string) func(args [][]byte) bool {
	return func(args [][]byte) bool {
		for _, name := range names {
			if len(args) > 0 && strings.EqualFold(string(args[0]), name) {
				return true
			}
		}
		return false
	}
}

// Script returns a match for calls of a script: FCALL or EVALSHA with this handle, or EVAL of the
// text whose SHA-1 is the handle.
func Script(handle string) func(args [][]byte) bool {
	return func(args [][]byte) bool {
		if len(args) < 2 {
			return false
		}
		switch {
		case bytes.EqualFold(args[0], []byte("fcall")), bytes.EqualFold(args[0], []byte("evalsha")):
			return strings.EqualFold(string(args[1]), handle)
		case bytes.EqualFold(args[0], []byte("eval")):
			sum := sha1.Sum(args[1])
			return strings.EqualFold(hex.EncodeToString(sum[:]), handle)
		}
		return false
	}
}
