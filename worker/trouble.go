package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/curfew-dev/curfew/internal/logonce"
	"github.com/curfew-dev/curfew/refusal"
)

// trouble records which calls of a partition fail. It ends when each failing call has succeeded
// again. So a call that fails while others succeed is one trouble in the log, and not a new one
// after each success.
type trouble struct {
	mu      sync.Mutex
	lasting logonce.Trouble
	failing map[repeated]bool
}

// repeated is a call that a worker repeats until it succeeds.
type repeated int

const (
	requests repeated = iota
	awaits
	heartbeats
	descriptions
)

// callFailed logs an error after which the worker tries again: the first, and reminders while calls
// fail. If the client is closed or the namespace has a newer version, it ends Run.
func (p *partition) callFailed(call repeated, message string, err error, attributes ...any) {
	if errors.Is(err, refusal.ErrClosed) || errors.Is(err, refusal.ErrNewer) {
		p.w.fail(err)
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	t := &p.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failing == nil {
		t.failing = map[repeated]bool{}
	}
	t.failing[call] = true
	if log, unlogged := t.lasting.Failed(); log {
		p.w.log.Error(message, append([]any{"worker", p.w.id, "partition", p.number, "error", err, "not_logged_before", unlogged}, attributes...)...)
	}
}

// callWorked records that a call succeeded, and logs the end of the trouble if no other call fails.
func (p *partition) callWorked(call repeated) {
	t := &p.trouble
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.failing[call] {
		return
	}
	if delete(t.failing, call); len(t.failing) > 0 {
		return
	}
	if log, lasted := t.lasting.Over(); log {
		p.w.log.Info("The calls of the worker succeed again", "worker", p.w.id, "partition", p.number, "lasted_ms", lasted.Milliseconds())
	}
}
