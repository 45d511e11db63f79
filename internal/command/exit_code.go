package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/curfew-dev/curfew/worker"
)

// The exit codes that mean more than failure, from sysexits.h. All others leave the decision to the
// retries of the task.
const (
	exitDataError = 65 // EX_DATAERR: no retry can help
	exitTryLater  = 75 // EX_TEMPFAIL: retry after a time
)

// end is how a command has ended.
type end struct {
	code   int
	how    string // the code in words
	stderr string // the last lines
}

// endOf returns how a command has ended. As in a shell, the code of a command that a signal ended is 128
// and the number of the signal.
func endOf(state *os.ProcessState, stderr string) end {
	if state == nil {
		return end{-1, "its exit code is not known", stderr}
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return end{128 + int(status.Signal()), fmt.Sprintf("signal %d, %s", status.Signal(), status.Signal()), stderr}
	}
	return end{state.ExitCode(), fmt.Sprintf("exit code %d", state.ExitCode()), stderr}
}

func (e end) error() error { return worker.Fail(e.code, withText(e.how, e.stderr)) }

// verdict returns the error that the end of a command means, nil for exit code 0.
func (c *Command) verdict(e end) error {
	switch e.code {
	case 0:
		return nil
	case exitDataError:
		return worker.Discard(e.error())
	case exitTryLater:
		delay, ok := retryAfterLine(lastLines(e.stderr, 1))
		if !ok {
			delay = c.RetryAfter
		}
		return worker.RetryAfter(delay, e.error())
	}
	return e.error()
}

// withText returns an error with the event first, and then the output of the command or server, if there is any.
func withText(what, said string) error {
	if said = strings.TrimSpace(said); said != "" {
		what += ": " + said
	}
	return errors.New(what)
}
