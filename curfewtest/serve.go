package curfewtest

import "github.com/curfew-dev/curfew/internal/embedded"

// Server is a Redis server in the process, to which any Redis client can connect. It keeps all data in memory.
type Server = embedded.Server

// Serve starts a server on a free port of the loopback interface, for examples and demos that need no
// Redis. Close ends it. It shows nothing about speed, memory limits, persistence or clusters. For tests
// use a [Stage], which has a server and moves its clock.
func Serve() (*Server, error) { return embedded.Start() }
