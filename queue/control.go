package queue

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Controlled is the state of a queue at the time of a change.
type Controlled struct {
	Known bool  // whether the queue had tasks or controls before; if not, the change applies from its first task on
	Ready int64 // tasks in its line
}

// Pause keeps the tasks of a queue from being claimed, until Resume. Its tasks stay in line, and are
// FAILED when their time is up. Running tasks continue.
func (q *Queue) Pause(ctx context.Context, queue string) (Controlled, error) {
	if err := q.ready(ctx); err != nil {
		return Controlled{}, refusal.Failed("pause", "", err)
	}
	return q.control(ctx, "pause", queue, "paused", 1)
}

// Resume ends a pause.
func (q *Queue) Resume(ctx context.Context, queue string) (Controlled, error) {
	if err := q.ready(ctx); err != nil {
		return Controlled{}, refusal.Failed("resume", "", err)
	}
	return q.control(ctx, "resume", queue, "paused", "")
}

// LimitRunning limits how many tasks of a queue run at once, over all workers. 0 removes the limit.
// Each partition enforces an equal share of n, rounded down. So n must be at least the number of
// partitions, and should be a multiple of it.
func (q *Queue) LimitRunning(ctx context.Context, queue string, n int) (Controlled, error) {
	if err := q.ready(ctx); err != nil {
		return Controlled{}, refusal.Failed("limit running", "", err)
	}
	partitions := q.Partitions()
	switch {
	case n == 0:
		return q.control(ctx, "limit running", queue, "max_running", "")
	case n < 0:
		return Controlled{}, refusal.Failed("limit running", "", refusal.Invalid("max running", "%d must be at least 1, or 0 for no limit", n))
	case n < partitions:
		return Controlled{}, refusal.Failed("limit running", "", refusal.Invalid("max running",
			"%d cannot be shared by %d partitions, since one of them would never give a task: allow at least %d, or use a namespace with %d partitions", n, partitions, partitions, n))
	}
	return q.control(ctx, "limit running", queue, "max_running", n/partitions)
}

// LimitLength limits how many tasks of a queue can be in line. 0 removes the limit. While so many are
// in line, Enqueue returns [refusal.ErrQueueFull] for a new task. Each partition has an equal share of
// n, rounded up, and refuses tasks for itself.
//
// Work that was accepted is never refused: children of agents, hooks, retries, agents that are woken,
// and tasks that Retry runs again. Delayed tasks are not in line until they start. So a line can
// become longer than its limit.
func (q *Queue) LimitLength(ctx context.Context, queue string, n int) (Controlled, error) {
	if err := q.ready(ctx); err != nil {
		return Controlled{}, refusal.Failed("limit length", "", err)
	}
	switch {
	case n == 0:
		return q.control(ctx, "limit length", queue, "max_length", "")
	case n < 0:
		return Controlled{}, refusal.Failed("limit length", "", refusal.Invalid("max length", "%d must be at least 1, or 0 for no limit", n))
	case n > maxSpan:
		return Controlled{}, refusal.Failed("limit length", "", refusal.Invalid("max length", "%d must be at most 2^53", n))
	}
	partitions := q.Partitions()
	return q.control(ctx, "limit length", queue, "max_length", (n+partitions-1)/partitions)
}

// Rate limits how often tasks of a queue are claimed: N in each Per on average, and up to Burst at
// once after a quiet time. The zero Rate is no limit.
type Rate struct {
	N     int
	Per   time.Duration
	Burst int // defaults to N
}

// LimitRate limits how often tasks of a queue are claimed, over all workers. The zero Rate removes
// the limit. Each partition enforces an equal share of the rate and of the burst, so the burst must
// be at least the number of partitions.
func (q *Queue) LimitRate(ctx context.Context, queue string, r Rate) (Controlled, error) {
	if err := q.ready(ctx); err != nil {
		return Controlled{}, refusal.Failed("limit rate", "", err)
	}
	if r == (Rate{}) {
		return q.control(ctx, "limit rate", queue, "rate", "", "per_ms", "", "burst", "")
	}
	if r.Burst == 0 {
		r.Burst = r.N
	}
	var err error
	partitions := q.Partitions()
	switch {
	case r.N <= 0:
		err = refusal.Invalid("rate", "%d must be at least 1: to stop a queue, Pause it; the zero Rate is no limit", r.N)
	case r.Per < time.Millisecond || r.Per > 365*24*time.Hour:
		err = refusal.Invalid("rate", "has a Per of %v: it must be 1ms to a year", r.Per)
	case r.N > maxSpan:
		err = refusal.Invalid("rate", "%d must be at most 2^53", r.N)
	case r.Burst < 0:
		err = refusal.Invalid("burst", "%d must be at least 1, or 0 for as many as the rate", r.Burst)
	case r.Burst < partitions:
		err = refusal.Invalid("burst", "%d cannot be shared by %d partitions, since each gives its first task at once: allow at least %d, or use a namespace with %d partitions", r.Burst, partitions, partitions, r.Burst)
	}
	if err != nil {
		return Controlled{}, refusal.Failed("limit rate", "", err)
	}
	return q.control(ctx, "limit rate", queue, "rate", r.N, "per_ms", perPartition(r.Per, partitions), "burst", max(r.Burst/partitions, 1))
}

// perPartition returns the time in ms in which one partition gives as many tasks as all partitions
// give in per. It rounds up, so that the queue does not exceed its rate. It multiplies the ms and
// the rest apart, because the product in ns can overflow.
func perPartition(per time.Duration, partitions int) int64 {
	n, rest := int64(partitions), per%time.Millisecond
	return per.Milliseconds()*n + (int64(rest)*n+int64(time.Millisecond)-1)/int64(time.Millisecond)
}

// control changes the controls in every partition. After an error some partitions can have the
// change already, so the caller should repeat the call.
func (q *Queue) control(ctx context.Context, op, queue string, controls ...any) (Controlled, error) {
	var sum Controlled
	if err := checkQueue("queue", queue); err != nil {
		return sum, refusal.Failed(op, "", err)
	}
	for p := range q.Partitions() {
		words, err := engine.Words(q.engine.Call(ctx, p, "control", append([]any{queue}, controls...)...))
		if err != nil {
			return sum, refusal.Failed(op+" of "+queue, "", partly(p, err))
		}
		if len(words) == 3 {
			sum.Known = sum.Known || engine.Number(words[1]) == 1
			sum.Ready += engine.Number(words[2])
		}
	}
	return sum, nil
}

// Drain cancels the tasks in a queue's line, up to 500 in a call, and returns their number. Running
// tasks continue. Delayed tasks stay, and so do tasks that join the line during the drain. If Drain
// returns an error, the tasks that it counts are cancelled, and more can be: drain again.
func (q *Queue) Drain(ctx context.Context, queue, reason string) (int64, error) {
	if err := q.ready(ctx); err != nil {
		return 0, refusal.Failed("drain", "", err)
	}
	var sum int64
	if err := checkQueue("queue", queue); err != nil {
		return sum, refusal.Failed("drain", "", err)
	}
	if limit := min(q.config.MaxBytes, maxReason); len(reason) > limit {
		return sum, refusal.Failed("drain", "", refusal.Invalid("reason", "has %d bytes, the limit is %d", len(reason), limit))
	}
	for p := range q.Partitions() {
		n, err := q.drainOne(ctx, p, queue, reason)
		if sum += n; err != nil {
			return sum, refusal.Failed("drain of "+queue, "", err)
		}
	}
	return sum, nil
}

// drainOne cancels the tasks that are in a partition's line at the start. The first call only reads
// the end of the line, because tasks that join later must stay, such as the hooks of cancelled
// tasks.
func (q *Queue) drainOne(ctx context.Context, p int, queue, reason string) (sum int64, err error) {
	reply, err := q.engine.Call(ctx, p, "drain", NewCall(), queue, 0, "")
	words, err := engine.List(reply, err, 6)
	if err != nil {
		return 0, err
	}
	for until := words[4:6]; engine.Number(words[2]) > 0; {
		reply, err := q.engine.Call(ctx, p, "drain", append([]any{NewCall(), queue, engine.MaxTasks, reason}, until...)...)
		if words, err = engine.List(reply, err, 4); err != nil {
			return sum, err
		}
		sum += engine.Number(words[1])
		if engine.Number(words[3]) == 0 {
			break
		}
	}
	return sum, nil
}
