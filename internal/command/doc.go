// Package command has handlers of package worker that run a task outside of this process: a
// command, or an HTTP server. docs/how-to/work.md has their contract.
//
// The command or server receives the facts about the task (facts.go) and its payload. It returns the
// result, or reports a failure by an exit code (exit_code.go) or a status (status.go). When the context
// of the handler ends, the command and all processes that it has started are stopped (group.go), and a
// request is cancelled. If this process is killed, a second process kills the commands (guard.go).
package command
