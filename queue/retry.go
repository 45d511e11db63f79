package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/field"
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/refusal"
)

// Retry runs an ended task again. It enqueues a new task with the same content and the same time
// limits, which count from now. RetryOf of the new task is the id of the old one. The old task is
// not changed. If change is not nil, it can modify the new task before it is enqueued.
//
// The new task has no idempotency key and no name, because the old task has them. It has no start
// time, and no owner, even if the old task was a child. Defaults that its kind got since then do not
// apply to it, with two exceptions: WarnAt, Retry and ResultType, if the old task has none, and fields that
// change sets to zero.
//
// Retry returns [refusal.ErrNotFound], and [refusal.ErrInvalid] for a task that has not ended and
// for a timer. A program that repeats Retry after [refusal.ErrUnknown] can create two tasks.
// [Queue.RetryAs] prevents that.
func (q *Queue) Retry(ctx context.Context, id string, change func(*Task)) (Receipt, error) {
	return q.retry(ctx, "", id, change)
}

// RetryAs is Retry with a name for the call, one word of up to 100 bytes. Each retry of a task needs
// another name. A repeat with the same name creates no task: it returns the first one's id, with New
// = false. RetryAs recognizes a repeat by the IdempotencyKey that it sets for the new task, until a
// day after the end of the new task. After the record of the old task was removed, a repeat returns
// [refusal.ErrNotFound].
func (q *Queue) RetryAs(ctx context.Context, call, id string, change func(*Task)) (Receipt, error) {
	if err := CheckCall(call); err != nil {
		return Receipt{}, refusal.Failed("retry", "", err)
	}
	return q.retry(ctx, call, id, change)
}

// retry implements Retry and RetryAs. For Retry, call is "".
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
	task, err := old.task()
	if err != nil {
		return Receipt{}, refusal.Failed("retry", id, err)
	}
	if call != "" { // a hash, because the id of a child can be longer than a key
		task.IdempotencyKey = fmt.Sprintf("retry-%x", sha256.Sum256([]byte(id+" "+call)))
	}
	if change != nil {
		before := task
		change(&task)
		if task.Retry != before.Retry && task.OnTimeout == before.OnTimeout {
			task.OnTimeout = "" // that of another expression
		}
	}
	task.pin()
	ctx, task.Headers = q.tracer.Again(ctx, spans.Task{ID: old.ID, Headers: old.Headers}, task.Headers)
	return q.Enqueue(ctx, task)
}

// task returns a new task with the content of a record.
func (r *Record) task() (Task, error) {
	var d Defaults // the stored settings, whether of the task or of its kind
	field.Defaults(&d, r.Fields)
	if r.Role == RoleTimer {
		return Task{}, refusal.Invalid("task", "is a timer, which cannot be run again: enqueue a new one")
	} else if r.Role == RolePromise {
		d = Defaults{ResultType: d.ResultType, OnDeadline: d.OnDeadline, WarnAt: d.WarnAt, Retention: d.Retention, Hooks: d.Hooks}
	}
	if d.Backoff.Delay <= 0 {
		d.Backoff = Backoff{} // what is left of the kind's has no effect
	}
	t := d.task(r.Kind)
	t.Queue, t.Payload, t.Headers, t.RetryOf, t.Promise = r.Queue, r.Payload, r.Headers, r.ID, r.Role == RolePromise
	t.Retention = cmp.Or(t.Retention, None)
	if t.Timeout = None; r.Deadline.IsZero() {
		t.WarnAt = 0 // it was a fraction of the owner's time, and the new task has no owner
	} else {
		t.Timeout = r.Deadline.Sub(r.CreatedAt)
	}
	if t.Promise {
		return t, nil
	}
	t.Priority, t.MaxRetries = r.Priority, cmp.Or(t.MaxRetries, NoRetries)
	if t.MaxRetries == NoRetries || strings.HasPrefix(string(t.OnTimeout), "fail: ") {
		t.OnTimeout = "" // the latter says why the expression could not be evaluated
	}
	// None, so that a default of the kind does not add a limit that the old task did not have.
	for _, limit := range []*time.Duration{&t.QueueTimeout, &t.AttemptTimeout, &t.CancelGrace, &t.TimeoutGrace} {
		*limit = cmp.Or(*limit, None)
	}
	return t, nil
}

// pin sets policies that the new task leaves out, so that the kind's defaults do not apply to it. It
// runs after change, because change may set Retry, and then OnTimeout follows from the expression.
func (t *Task) pin() {
	for _, hook := range []*Hook{&t.Hooks.OnSuccess, &t.Hooks.OnFailure, &t.Hooks.OnTimeout, &t.Hooks.OnCancel} {
		*hook = cmp.Or(*hook, NoHook)
	}
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
