package worker

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// unknownKindDelay is when a task whose kind has no handler here may be claimed again.
const unknownKindDelay = time.Second

// attempt is one run of a handler. It is also the parent of the handler's context. There
// Info finds it.
type attempt struct {
	context.Context // the parent of the contexts of all handlers
	partition       *partition
	handle          Handler
	claim           queue.Claim
	received        time.Time // when the claim came, by the local clock; claim.Now by that of Redis
	worker          string    // whose claim it is
	base            context.Context
	cancel          context.CancelCauseFunc // of base
	outcome         queue.Outcome
	progress        progress

	// Guarded by the partition's mu.
	finished bool // the outcome is final
	stopped  bool // Redis has said that it must stop
	refusals int  // requests with this outcome that Redis refused
}

// claimKey says which claim it is: a task has a new epoch each time it is claimed.
type claimKey struct {
	id    string
	epoch int64
}

func (a *attempt) key() claimKey { return claimKey{a.claim.ID, a.claim.Epoch} }

// newAttempt makes an attempt that is ready to run.
func newAttempt(root context.Context, p *partition, worker string, handle Handler, c *queue.Claim, received time.Time) *attempt {
	a := &attempt{Context: root, partition: p, worker: worker, handle: handle, claim: *c, received: received}
	a.outcome.ID, a.outcome.Epoch = c.ID, c.Epoch
	a.base, a.cancel = context.WithCancelCause(a)
	return a
}

// giveBack makes an attempt that has finished without a run: its task is given back.
func giveBack(p *partition, c *queue.Claim, delay time.Duration) *attempt {
	return &attempt{partition: p, claim: *c, finished: true,
		outcome: queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Release, Delay: delay}}
}

// run runs the handler, and hands its outcome to the partition.
func (a *attempt) run() {
	defer a.partition.finish(a)
	a.runHandler()
}

// runHandler calls the handler and makes the outcome, however the handler ends: it
// returns, it panics, or it ends its goroutine.
func (a *attempt) runHandler() {
	ctx, endLimits := a.handlerContext()
	var result []byte
	err := errGoexit // unless the handler returns or panics
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, a.panicked(v, debug.Stack())
		}
		cause := context.Cause(ctx)
		endLimits()
		a.cancel(nil)
		judge(&a.outcome, result, err, cause, a.partition.w.q.MaxBytes())
		a.evaluateRetry(result)
	}()
	result, err = a.handle(ctx, a.claim.Payload)
}

// handlerContext returns the context of the handler. It adds a timer only if there is a
// limit.
func (a *attempt) handlerContext() (context.Context, context.CancelFunc) {
	var taskTimeout time.Time
	if d := a.partition.w.config.TaskTimeout; d > 0 {
		taskTimeout = time.Now().Add(d)
	}
	c := &a.claim
	return limit(a.base,
		bound{past(local(c.Deadline, c.Now, a.received)), ErrDeadline},
		bound{past(local(c.AttemptDeadline, c.Now, a.received)), ErrAttemptTimeout},
		bound{taskTimeout, ErrTaskTimeout})
}

func (a *attempt) stop(reason string) {
	a.partition.w.counts.stopped.Add(1)
	a.cancel(stopCause(reason))
}
