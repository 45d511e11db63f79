package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/refusal"
)

// Retry runs an ended task again: it enqueues a new task with the same content and the same time
// limits, which count from now. RetryOf of the new task is the id of the old one. The old task is not
// changed. change, if it is not nil, can modify the new task before it is enqueued.
//
// The new task has no idempotency key and no name (the old task has it), no start time, and no owner, even if
// the old one was a child. It takes no default that its kind has got since, but for WarnAt and Retry if the old
// task has none, and for what change sets to zero. Retry returns [refusal.ErrNotFound], and [refusal.ErrInvalid] for a task
// that has not ended and for a timer.
//
// A program that repeats Retry, because it returned [refusal.ErrUnknown], can make two new tasks. [Queue.RetryAs]
// excludes that.
func (q *Queue) Retry(ctx context.Context, id string, change func(*Task)) (Receipt, error) {
	return q.retry(ctx, "", id, change)
}

// RetryAs is Retry with a name for the call, one word of up to 100 bytes that no other retry of the task has. A repeat
// with the same name makes no task: it returns the id of the first one, with New = false. RetryAs sets the
// IdempotencyKey of the new task, so a repeat is known until a day after the end of the new task. After the record of the
// old task was removed, a repeat returns [refusal.ErrNotFound].
func (q *Queue) RetryAs(ctx context.Context, call, id string, change func(*Task)) (Receipt, error) {
	if err := CheckCall(call); err != nil {
		return Receipt{}, refusal.Failed("retry", "", err)
	}
	return q.retry(ctx, call, id, change)
}

// retry runs a task again. call is "" if it has no name.
func (q *Queue) retry(ctx context.Context, call, id string, change func(*Task)) (Receipt, error) {
	if err := q.ready(ctx); err != nil {
		return Receipt{}, refusal.Failed("retry", "", err)
	}
	old, err := q.Get(ctx, id)
	if err != nil {
		return Receipt{}, err
	}
	if !old.Status.Ended() {
		return Receipt{}, refusal.Failed("retry", id, refusal.Invalid("task", "is %s: only a task that has ended can be run again", old.Status))
	}
	task, err := old.again()
	if err != nil {
		return Receipt{}, refusal.Failed("retry", id, err)
	}
	if call != "" { // ids of children can be longer than a key
		task.IdempotencyKey = fmt.Sprintf("retry-%x", sha256.Sum256([]byte(id+" "+call)))
	}
	if change != nil {
		change(&task)
	}
	task.pin()
	ctx, task.Headers = q.tracer.Again(ctx, spans.Task{ID: old.ID, Headers: old.Headers}, task.Headers)
	return q.Enqueue(ctx, task)
}

// again returns a new task with the content of a record.
func (r *Record) again() (Task, error) {
	f := r.Fields
	t := Task{
		Kind: r.Kind, Queue: r.Queue, Payload: r.Payload, Headers: r.Headers,
		Timeout: None, WarnAt: float64(engine.Number(f["warn_percent"])) / 100, Hooks: ReadHooks(f), RetryOf: r.ID,
		OnDeadline: OnDeadline(f["on_deadline"]),
	}
	if t.Retention = span(f["retention_ms"]); t.Retention == 0 {
		t.Retention = None
	}
	if r.Deadline.IsZero() {
		t.WarnAt = 0 // it was a fraction of the owner's time
	} else {
		t.Timeout = r.Deadline.Sub(r.CreatedAt)
	}
	switch f["role"] {
	case "promise":
		t.Promise = true
		return t, nil
	case "timer":
		return Task{}, refusal.Invalid("task", "is a timer, which cannot be run again: enqueue a new one")
	}
	t.Priority, t.MaxRetries, t.Retry = r.Priority, r.MaxRetries, f["retry_expression"]
	t.Backoff = Backoff{Delay: span(f["backoff_ms"]), Exponential: f["backoff"] == "exponential", Max: span(f["backoff_max_ms"]),
		Jitter: float64(engine.Number(f["jitter"])) / 100}
	if t.MaxRetries == 0 {
		t.MaxRetries = NoRetries
	} else if t.Retry == "" {
		t.OnTimeout = OnTimeout(f["on_timeout"])
	}
	// None, so that a default of the kind does not add a limit that the old task did not have.
	for limit, stored := range map[*time.Duration]string{
		&t.QueueTimeout: f["queue_timeout_ms"], &t.AttemptTimeout: f["attempt_timeout_ms"], &t.CancelGrace: f["cancel_grace_ms"],
		&t.TimeoutGrace: f["timeout_grace_ms"]} {
		if *limit = span(stored); *limit == 0 {
			*limit = None
		}
	}
	return t, nil
}

// pin sets what a task leaves out, as limits are set above, but after change: OnTimeout excludes Retry, which
// change may set.
func (t *Task) pin() {
	if t.Promise || t.Timer {
		return
	}
	t.OnDeadline = cmp.Or(t.OnDeadline, DeadlineCancelAll)
	if t.Retry == "" {
		t.OnTimeout = cmp.Or(t.OnTimeout, OnTimeoutFail)
	}
	if t.Backoff == (Backoff{}) {
		t.Backoff.Delay = None
	}
}

func span(ms string) time.Duration { return time.Duration(engine.Number(ms)) * time.Millisecond }
