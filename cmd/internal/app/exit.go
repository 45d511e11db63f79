package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// Exit codes. They are part of the interface: scripts act on them.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitUnreachable = 4 // or unfit
	ExitRefused     = 5 // the state of the task refuses it
	ExitThreshold   = 99
	ExitTimedOut    = 124 // as coreutils timeout
	ExitInterrupted = 130
)

// Doubled is how long after a signal another one may be the same: programs such as timeout send it to a process and to its group.
const Doubled = 300 * time.Millisecond

// NotFound returns an error for an object that does not exist.
func NotFound(format string, args ...any) error {
	return cli.Exit(fmt.Sprintf(format, args...), ExitNotFound)
}

// WhyNoTask lists the possible reasons why a task does not exist.
const WhyNoTask = "the id is wrong, the task is in another namespace, or its retention is over"

// NoTask returns the error for tasks that do not exist.
func NoTask(ids ...string) error {
	return NotFound("there is no task %s: %s", strings.Join(ids, ", "), WhyNoTask)
}

// Usage returns an error for wrong use of a command.
func Usage(format string, args ...any) error {
	return cli.Exit(fmt.Sprintf(format, args...), ExitUsage)
}
