package worker

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxText  = 16 << 10 // bytes of an error's text
	maxStack = 8 << 10  // bytes of a stack in the log
)

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit, or FailNow of a test) instead of returning")

// panicked logs a panic of the handler with its stack, and returns an error without the stack: the
// task's error may be shown to people who must not see how the program is built.
func (a *attempt) panicked(v any, stack []byte) error {
	err := fmt.Errorf("panic: %v", v)
	a.partition.w.log.Error("A handler panicked", "queue", a.claim.Queue, "kind", a.claim.Kind, "task_id", a.claim.ID, "worker", a.worker, "error", errorText(err, maxText),
		"stack", strings.ToValidUTF8(string(stack[:min(len(stack), maxStack)]), ""))
	return err
}

// errorText returns the text of an error, cut to limit bytes and to maxText. It recovers if the
// Error method of err panics.
func errorText(err error, limit int) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("an error whose Error method panics: %v", v)
		}
	}()
	s = err.Error()
	if limit = min(limit, maxText); len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}
