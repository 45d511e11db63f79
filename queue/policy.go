package queue

import (
	"math"
	"time"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/retryexpr"
)

// OnTimeout says what happens to a task when an attempt takes too long.
type OnTimeout string

// When an attempt takes too long, the task is FAILED or retried.
const (
	OnTimeoutFail  OnTimeout = "fail"
	OnTimeoutRetry OnTimeout = "retry"
)

// Backoff is the time between a failed attempt and the next one. It is Delay; with Exponential,
// each retry doubles it. It is at most Max, or a day if Max is 0. Jitter is from 0 to 1. It subtracts a
// random part, up to that fraction, so that tasks that failed together are not retried together. A Delay of None
// is no back-off, even if the kind has a default.
type Backoff struct {
	Delay       time.Duration
	Exponential bool
	Max         time.Duration
	Jitter      float64
}

// OnDeadline says how a task with children ends when its own time is up. Its children time out
// in both cases.
type OnDeadline string

// With DeadlineCancelAll the task has timed out, and waiting callers get a [TaskTimedOutError].
// With DeadlineFail it has failed with the error "Workflow exceeded timeout", and they get a
// [TaskFailedError].
const (
	DeadlineCancelAll OnDeadline = "cancel_all"
	DeadlineFail      OnDeadline = "fail"
)

// checkPolicy refuses invalid limits and retry settings.
func (t *Task) checkPolicy() error {
	if t.MaxRetries < NoRetries {
		return refusal.Invalid("max retries", "%d must not be negative; NoRetries (%d) means no retries", t.MaxRetries, NoRetries)
	}
	switch t.OnTimeout {
	case "", OnTimeoutFail, OnTimeoutRetry:
	default:
		return refusal.Invalid("on timeout", "%q must be fail or retry", refusal.Clip(string(t.OnTimeout)))
	}
	switch t.OnDeadline {
	case "", DeadlineCancelAll, DeadlineFail:
	default:
		return refusal.Invalid("on deadline", "%q must be cancel_all or fail", refusal.Clip(string(t.OnDeadline)))
	}
	if b := t.Budget; b != 0 && !(b >= 0.01 && b <= 1) {
		return refusal.Invalid("budget", "%v must be a fraction of the owner's time, from 0.01 to 1", b)
	}
	if t.Budget != 0 && names.OwnerOf(t.ID) == "" {
		return refusal.Invalid("budget", "is for children only, since it is a fraction of the owner's time: use Timeout")
	}
	if w := t.WarnAt; w != 0 && !(w >= 0.01 && w <= 0.99) {
		return refusal.Invalid("warn at", "%v must be a fraction of the task's time, from 0.01 to 0.99", w)
	}
	if j := t.Backoff.Jitter; !(j >= 0 && j <= 1) {
		return refusal.Invalid("jitter", "%v must be a fraction of the back-off, from 0 to 1", j)
	}
	if b := t.Backoff; b.Delay <= 0 && b != (Backoff{Delay: b.Delay}) {
		return refusal.Invalid("back-off", "needs a Delay")
	}
	return t.checkRetry()
}

func (t *Task) checkRetry() error {
	if t.Retry == "" {
		return nil
	}
	if t.OnTimeout != "" {
		return refusal.Invalid("on timeout", "cannot be used with Retry: leave OnTimeout out, the expression decides about timeouts too")
	}
	return retryexpr.Check(t.Kind, t.Retry)
}

// policyFields adds the fields for which kinds have defaults: limits, retries, retention, hooks.
func (t *Task) policyFields(add func(string, any)) {
	addSpan(add, "timeout_ms", t.Timeout)
	addSpan(add, "queue_timeout_ms", t.QueueTimeout)
	addSpan(add, "attempt_timeout_ms", t.AttemptTimeout)
	addSpan(add, "cancel_grace_ms", t.CancelGrace)
	addSpan(add, "timeout_grace_ms", t.TimeoutGrace)
	addSpan(add, "retention_ms", t.Retention)
	t.Hooks.fields(add)
	if t.WarnAt != 0 {
		add("warn_percent", int(math.Round(t.WarnAt*100)))
	}
	if t.OnDeadline != "" {
		add("on_deadline", string(t.OnDeadline))
	}
	if t.MaxRetries != 0 {
		add("max_retries", max(t.MaxRetries, 0))
	}
	t.Backoff.fields(add)
	if t.OnTimeout != "" {
		add("on_timeout", string(t.OnTimeout))
	}
	if t.Retry != "" {
		add("retry_expression", retryexpr.OneLine(t.Retry))
		// All that the expression can read of an attempt that took too long is known now, so it is
		// evaluated here, once. The script that ends such an attempt cannot evaluate it.
		add("on_timeout", retryexpr.Verdict(t.Kind, t.Retry, retryexpr.TimedOut(t.Kind)))
	}
}

func (b *Backoff) fields(add func(string, any)) {
	if b.Delay == 0 {
		return
	}
	if b.Delay == None {
		add("backoff_ms", "none")
		return
	}
	// All fields are set, so that no part of a kind's back-off is used with these.
	longest, growth := b.Max, "constant"
	if longest == 0 {
		longest = None
	}
	if b.Exponential {
		growth = "exponential"
	}
	addSpan(add, "backoff_ms", b.Delay)
	addSpan(add, "backoff_max_ms", longest)
	add("backoff", growth)
	add("jitter", int(math.Round(b.Jitter*100)))
}
