package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
)

// unknownKindDelay bounds the delay of a task that is given back because its kind has no handler
// here.
const unknownKindDelay = time.Second

// noHandler is the reason for which such a task is given back. The record keeps it, and
// inspect.Explain shows it.
const noHandler = "no handler for its kind"

// attempt is one run of a handler. This file has the functions in the order of an attempt's life:
//
//	start           makes an attempt for a claimed task
//	run             runs the attempt in a goroutine
//	runHandler      calls the handler
//	handlerContext  ends the handler's context at the first limit of the task or the worker
//	stop            ends it earlier if the task has ended or the claim is lost; a shutdown
//	                ends the parent of all these contexts
//	judge           makes the outcome from the handler's return values and the context's cause
//	finish          releases the slot, and queues the outcome for a request
//	settled         handles the verdict of Redis on the outcome
//
// The attempt is also the parent of the handler's context. Info finds it there.
type attempt struct {
	context.Context // the parent of the contexts of all handlers
	partition       *partition
	handle          Handler
	claim           queue.Claim
	received        time.Time // when the claim arrived, by the local clock; claim.Now is about the same instant by the clock of Redis
	worker          string    // id of the worker that has the claim
	base            context.Context
	cancel          context.CancelCauseFunc // of base
	outcome         queue.Outcome
	progress        progress
	span            *spans.Span // nil without tracing

	// Guarded by the partition's mu.
	finished bool // the outcome is final
	stopped  bool // Redis has reported that it must stop
	refusals int  // how many requests with this outcome Redis has refused
}

// claimKey identifies a claim: a task has a new epoch each time it is claimed.
type claimKey struct {
	id    string
	epoch int64
}

func (a *attempt) key() claimKey { return claimKey{a.claim.ID, a.claim.Epoch} }

// start makes attempts for the tasks that a request has claimed, and returns those to run. A task
// without a slot or a handler gets an attempt that only gives it back. Caller holds the partition's
// mu.
func (p *partition) start(r *request, claims []queue.Claim, received time.Time) (started []*attempt) {
	w := p.w
	if r.slots < len(claims) { // takeBackSlots was called: use the slots that are free now
		r.slots += w.slots.acquireFree(&p.account, len(claims)-r.slots)
	}
	for i := range claims {
		c := &claims[i]
		var a *attempt
		switch handle := w.handlers.find(c.Kind); {
		case w.stopping.Load(), len(started) == r.slots, !p.mayStart(r.alone):
			a = giveBack(p, c, 0, "")
		case handle == nil:
			w.logUnknownKind(w.id, c)
			a = giveBack(p, c, unknownKindDelay, noHandler)
		default:
			a = newAttempt(w.root, p, w.id, handle, c, received)
			started = append(started, a)
		}
		p.hold(a)
		if a.finished {
			p.unreported = append(p.unreported, a)
		}
	}
	w.counts.started.Add(int64(len(started)))
	w.counts.running.Add(int64(len(started)))
	return started
}

// newAttempt returns an attempt that is ready to run.
func newAttempt(root context.Context, p *partition, worker string, handle Handler, c *queue.Claim, received time.Time) *attempt {
	a := &attempt{Context: root, partition: p, worker: worker, handle: handle, claim: *c, received: received}
	a.outcome.ID, a.outcome.Epoch = c.ID, c.Epoch
	a.base, a.cancel = context.WithCancelCause(a)
	return a
}

// giveBack returns a finished attempt, which never runs: its outcome gives the task back for this
// reason.
func giveBack(p *partition, c *queue.Claim, delay time.Duration, reason string) *attempt {
	class := queue.Class("")
	if reason == noHandler {
		class = queue.ClassNoHandler
	}
	return &attempt{partition: p, worker: p.w.id, claim: *c, finished: true,
		outcome: queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Release, Class: class, Delay: delay, Error: reason}}
}

// run runs the handler, and hands its outcome to the partition.
func (a *attempt) run() {
	defer a.partition.finish(a)
	a.runHandler()
}

// runHandler calls the handler and makes the outcome, whether the handler returns, panics, or
// ends its goroutine.
func (a *attempt) runHandler() {
	ctx, endLimits := a.handlerContext()
	ctx = a.trace(ctx)
	var result []byte
	err := errGoexit // remains if the handler neither returns nor panics
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, a.panicked(v, debug.Stack())
		}
		cause := context.Cause(ctx)
		endLimits()
		a.cancel(nil)
		judge(&a.outcome, result, err, cause, a.partition.w.q.MaxBytes())
		a.evaluateRetry(result)
		a.traceEnd(cause)
	}()
	result, err = a.handle(ctx, a.claim.Payload)
}

// handlerContext returns the context of the handler. Without a limit it makes no timer.
func (a *attempt) handlerContext() (context.Context, context.CancelFunc) {
	var taskTimeout time.Time
	if d := a.partition.w.config.TaskTimeout; d > 0 {
		taskTimeout = time.Now().Add(d)
	}
	c := &a.claim
	return limit(a.base,
		bound{past(local(c.Deadline, c.Now, a.received)), ErrDeadline},
		bound{a.graceBefore(c.Deadline), errDeadlineNear},
		bound{past(local(c.AttemptDeadline, c.Now, a.received)), ErrAttemptTimeout},
		bound{a.graceBefore(c.AttemptDeadline), ErrAttemptTimeout},
		bound{taskTimeout, ErrTaskTimeout})
}

// graceBefore returns the start of the task's TimeoutGrace before a deadline, by the local clock. It
// returns zero if the task has no grace or no such deadline.
func (a *attempt) graceBefore(deadline time.Time) time.Time {
	if deadline.IsZero() || a.claim.TimeoutGrace == 0 {
		return time.Time{}
	}
	grace := min(a.claim.TimeoutGrace, max(deadline.Sub(a.claim.Now)/2, 0))
	return local(deadline.Add(-grace), a.claim.Now, a.received)
}

// stop ends the context of an attempt, because its task has ended, is being cancelled, or was
// claimed again. The slot is released only when the handler returns, because a handler that ignores
// its context still uses it.
func (p *partition) stop(s claim.Stop) {
	p.mu.Lock()
	key := claimKey{s.ID, s.Epoch}
	a := p.held[key]
	if a == nil || a.finished {
		p.mu.Unlock()
		return // the handler has returned, or an earlier message has stopped the attempt
	}
	first := !a.stopped
	a.stopped = true
	// A handler of a task in its CancelGrace can clean up, so it keeps its claim until it returns.
	if s.Reason != "cancelling" {
		p.drop(key)
		p.w.counts.stray.Add(1)
	}
	p.mu.Unlock()
	if first { // every heartbeat repeats the stop with the reason "cancelling"
		a.stop(s.Reason)
	}
}

func (a *attempt) stop(reason string) {
	a.partition.w.counts.stopped.Add(1)
	if reason == "timeout" {
		a.cancel(a.timeoutCause())
	} else {
		a.cancel(stopCause(reason))
	}
}

// timeoutCause returns the cause for a timeout that Redis has reported: the error of the earlier
// limit of the claim. The attempt's own timer uses the same error.
func (a *attempt) timeoutCause() error {
	c := &a.claim
	switch {
	case !c.AttemptDeadline.IsZero() && (c.Deadline.IsZero() || c.AttemptDeadline.Before(c.Deadline)):
		return ErrAttemptTimeout
	case !c.Deadline.IsZero():
		return ErrDeadline
	}
	return ErrTimeout
}

// judge makes the outcome from the return values of a handler. cause is the cause of its context
// when the handler returned, nil if the context had not ended.
//
// A result is a success even if the context had ended. An error after the limit of an attempt is
// reported as a timeout. After shutdown, and after the task's deadline, any error gives the task
// back, because only Redis can decide whether the deadline has passed.
func judge(o *queue.Outcome, result []byte, err, cause error, maxBytes int) {
	if err == nil && len(result) > maxBytes {
		err = Discard(fmt.Errorf("the result has %d bytes, the limit is %d: store it elsewhere and return a reference", len(result), maxBytes))
	}
	switch {
	case err == nil:
		o.Verb, o.Result = queue.Complete, result
	case errors.Is(err, ErrSuspended):
		// Without a verb the worker reports nothing.
	case errors.Is(cause, ErrShutdown), cause == ErrDeadline:
		o.Verb = queue.Release // by the clock of Redis the task may still have time left
	case cause == ErrTaskTimeout || cause == ErrAttemptTimeout:
		o.Verb, o.Class, o.Error = queue.Fail, queue.ClassTimeout, errorText(err, maxBytes)
	default:
		v := VerdictOf(err)
		o.Verb, o.Class, o.Code, o.Delay = v.Verb, v.Class, v.Code, v.Delay
		if v.Verb == queue.Fail && cause == errDeadlineNear {
			o.Class = queue.ClassDeadline
		}
		if bare, _ := err.(*verdict); v.Verb != queue.Release || bare == nil || bare.err != nil {
			o.Error = errorText(err, maxBytes) // for Release, the error that wraps it is the reason
		}
	}
}

// finish releases the slot of an attempt whose handler has returned, and queues its outcome for the
// next request.
func (p *partition) finish(a *attempt) {
	p.mu.Lock()
	if p.returned(a) && !p.closed {
		p.unreported = append(p.unreported, a)
	}
	// The outcome is queued before the slot is released, because drained reads the slots first: when
	// all slots are free, all outcomes must be visible.
	woken := p.w.slots.release(&p.account, 1)
	if p.fetchAgain {
		p.resumeFetching(false)
	}
	p.startSender()
	p.mu.Unlock()
	wakeAll(woken)
	p.w.claimEnded()
	p.w.drainStep()
}

// returned updates the counts for an attempt whose handler has returned, and reports whether the
// attempt still has its claim. Caller holds mu.
func (p *partition) returned(a *attempt) bool {
	p.w.counts.running.Add(-1)
	a.finished = true
	switch {
	case p.held[a.key()] != a: // stop was called, so the claim is lost
		p.w.counts.stray.Add(-1)
	case a.outcome.Verb == "": // the handler has given up its claim
		p.drop(a.key())
		p.w.counts.suspended.Add(1)
	default:
		return true
	}
	return false
}

// settled removes an attempt after the reply to its outcome, and returns true. If the result is not of the task's
// ResultType, the attempt has failed: its outcome is another one, which must be reported too, and settled returns false.
// Caller holds the partition's mu.
func (a *attempt) settled(v queue.Verdict) bool {
	w, o := a.partition.w, &a.outcome
	if v.Word == queue.VerdictInvalid && o.Verb == queue.Complete {
		result := o.Result
		*o = queue.Outcome{ID: o.ID, Epoch: o.Epoch, Verb: queue.Fail, Class: queue.ClassError, Error: "the " + v.Why}
		a.evaluateRetry(result)
		return false
	}
	a.partition.drop(a.key())
	switch {
	case !v.Accepted():
		w.counts.refused.Add(1)
		about := []any{"task_id", a.claim.ID, "queue", a.claim.Queue, "kind", a.claim.Kind, "worker", a.worker,
			"verb", string(a.outcome.Verb), "verdict", v.Word, "status", string(v.Status), "why", v.Why}
		if v.Why != "" {
			w.log.Warn("An outcome was refused", about...)
		} else {
			w.log.Debug("An outcome was refused: the task is no longer this worker's", about...)
		}
	case a.outcome.Verb == queue.Complete:
		w.counts.completed.Add(1)
	case a.outcome.Verb == queue.Fail:
		w.counts.failed.Add(1)
	default:
		w.counts.released.Add(1)
		if a.outcome.Class == queue.ClassDiverged {
			w.logDiverged(a)
		}
	}
	return true
}
