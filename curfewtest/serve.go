package curfewtest

import "github.com/curfew-dev/curfew/internal/embedded"

// Server is a server in the process, which any Redis client can speak to. It keeps everything in memory.
type Server = embedded.Server

// Serve starts a server on a free port of the loopback interface, for a program that shows something
// without a Redis. Close ends it. It is no evidence for speed, memory limits, persistence or a
// cluster. A test is easier with a [Stage], which has one and moves its clock.
func Serve() (*Server, error) { return embedded.Start() }
