// Package outside has handlers of package worker that run a task outside of this process: a
// command, or an HTTP server. docs/work.md has their contract.
//
// A handler is told what the task is (facts.go), gets the payload, and gives the result or says
// why there is none: by an exit code (exit_code.go) or a status (status.go). When its context ends,
// the command and everything that it has started is ended too (group.go), and a request is
// cancelled. If this process is killed, a second process ends the commands (guard.go).
package outside
