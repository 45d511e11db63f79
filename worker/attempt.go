package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

const (
	maxStack = 4 << 10  // of a panic's stack that goes into the task's error
	maxText  = 16 << 10 // of an error's text
)

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit, or FailNow of a test) instead of returning")

// attempt is one run of a handler. It is also the parent of the handler's context,
// where Info finds it.
type attempt struct {
	context.Context // the worker's root
	lane            *lane
	handle          Handler
	claim           queue.Claim
	received        time.Time // the local instant of claim.Now
	worker          string    // whose claim it is
	base            context.Context
	cancel          context.CancelCauseFunc
	outcome         queue.Outcome
	progress        progress

	// Guarded by the lane.
	ended    bool // the handler has returned, and outcome is final
	stopping bool // it was told to stop
	tries    int  // trips that Redis refused with this outcome aboard
}

// newAttempt readies a claim to run. Its context is cancelled by stop, or with the
// root; only limit adds a timer.
func newAttempt(root context.Context, l *lane, worker string, handle Handler, claim *queue.Claim, received time.Time) *attempt {
	a := &attempt{Context: root, lane: l, worker: worker, handle: handle, claim: *claim, received: received}
	a.outcome.ID, a.outcome.Epoch = claim.ID, claim.Epoch
	a.base, a.cancel = context.WithCancelCause(a)
	return a
}

// back is an attempt that is over before it began: the task is given back.
func back(l *lane, claim *queue.Claim, delay time.Duration) *attempt {
	return &attempt{lane: l, claim: *claim, ended: true,
		outcome: queue.Outcome{ID: claim.ID, Epoch: claim.Epoch, Verb: queue.Release, Delay: delay}}
}

func (a *attempt) held() hold { return hold{a.claim.ID, a.claim.Epoch} }

// Value makes the attempt known to Info.
func (a *attempt) Value(key any) any {
	if key == (infoKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// run calls the handler and hands the outcome to the lane.
func (a *attempt) run() {
	defer a.lane.end(a)
	a.call()
}

// call calls the handler and judges the attempt, however the handler ends: by
// returning, by a panic, or by ending its goroutine.
func (a *attempt) call() {
	ctx, cancel := a.limited()
	var result []byte
	err := errGoexit
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, a.panicked(v, debug.Stack())
		}
		cause := context.Cause(ctx)
		cancel()
		a.cancel(nil)
		judge(&a.outcome, result, err, cause, a.lane.w.q.MaxBytes())
		a.askRetry(result)
	}()
	result, err = a.handle(ctx, a.claim.Payload)
}

// limited is the handler's context.
func (a *attempt) limited() (context.Context, context.CancelFunc) {
	var own time.Time
	if most := a.lane.w.config.TaskTimeout; most > 0 {
		own = time.Now().Add(most)
	}
	c := &a.claim
	return limit(a.base,
		bound{past(local(c.Deadline, c.Now, a.received)), ErrDeadline},
		bound{past(local(c.AttemptDeadline, c.Now, a.received)), ErrAttemptTimeout},
		bound{own, ErrTaskTimeout})
}

func (a *attempt) panicked(v any, stack []byte) error {
	err := fmt.Errorf("panic: %v\n\n%s", v, stack[:min(len(stack), maxStack)])
	a.lane.w.log.Error("A handler panicked", "kind", a.claim.Kind, "task_id", a.claim.ID, "error", err)
	return err
}

// text is what an error says, cut to what a record should hold. An error whose own
// method panics must not end the process.
func text(err error, most int) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("%T, whose Error method panics: %v", err, v)
		}
	}()
	s = err.Error()
	if most = min(most, maxText); len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}
