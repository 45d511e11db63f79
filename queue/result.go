package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// lookAgain is how long the loss of what says that a task has ended may go unnoticed.
// The connection breaks with most losses, but not when another node of a cluster dies.
const lookAgain = 5 * time.Second

// Result waits until a task has ended, and returns its result or the error that
// says how else it ended: *TaskTimedOutError, *TaskFailedError or [refusal.ErrCancelled].
// [refusal.ErrNotFound] means that there is no such task.
//
// It waits as long as ctx lets it, also while Redis is away, and never returns [refusal.ErrUnknown]
// or [refusal.ErrUnavailable]: the error of an ended context says what it met last. It returns at once
// if waiting does not help ([refusal.Permanent]).
//
// It does not poll: the first who waits subscribes to the namespace's ends, and a
// task is marked as watched. A failover of Redis may lose the mark, the message or the
// task itself, and the user may lose the right to the channel, so every five seconds it looks even so. If a failover
// undid the end of the task, it waits for the next one. It is not late either if no reaper runs: when the
// task's time is up it looks by itself, and the look ends the task. (The end of an
// owner reaches its children by the reaper, and only then who waits for them.)
func (q *Queue) Result(ctx context.Context, id string) ([]byte, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("result", "", err)
	}
	p, err := names.PartitionIn(id, q.Partitions())
	if err != nil {
		return nil, refusal.Failed("result", id, err)
	}
	signal, leave, err := q.watches.join(ctx, q, id)
	if err != nil {
		return nil, refusal.Failed("result", id, err)
	}
	defer leave()
	for {
		r, due, err := q.ended(ctx, p, id)
		switch {
		case err == nil && r != nil:
			return r.Outcome()
		case err == nil:
		case ctx.Err() != nil, !errors.Is(err, refusal.ErrUnavailable) && !errors.Is(err, refusal.ErrUnknown):
			return nil, refusal.Failed("result", id, err)
		default:
			due = time.After(time.Second)
		}
		select {
		case <-signal:
		case <-due:
		case <-time.After(lookAgain):
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if err != nil {
				cause = fmt.Errorf("%w, while %v", cause, err)
			}
			return nil, refusal.Failed("result", id, cause)
		}
	}
}

// ended is the record of a task that has ended; if it has not, due fires when its time is up.
func (q *Queue) ended(ctx context.Context, p int, id string) (r *Record, due <-chan time.Time, err error) {
	over, due, err := q.look(ctx, p, id)
	if err != nil || !over {
		return nil, due, err
	}
	records, err := q.GetAll(ctx, []string{id})
	switch {
	case err != nil:
		return nil, nil, errors.Unwrap(err)
	case records[0] == nil:
		return nil, nil, refusal.ErrNotFound
	case !records[0].Status.Ended():
		return nil, time.After(time.Second), nil // a failover undid it in between
	}
	return records[0], nil, nil
}

// look marks a task as watched and says whether it has ended; if not, due fires
// when its time is up.
func (q *Queue) look(ctx context.Context, p int, id string) (ended bool, due <-chan time.Time, err error) {
	reply, err := q.engine.Call(ctx, p, "watch", id)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return false, nil, err
	}
	state, err := engine.List(answers[1], nil, 2)
	if err != nil {
		return false, nil, err
	}
	switch status := Status(engine.Text(state[0])); {
	case status == "":
		return false, nil, refusal.ErrNotFound
	case status == "BROKEN":
		return false, nil, refusal.ErrBroken
	case status.Ended():
		return true, nil, nil
	}
	if until := engine.Number(state[1]); until > 0 {
		// One ms past it the task is out of time; a reaper gets a moment to be first.
		// A day at the most: a Duration does not hold every span that a task may have.
		ms := min(until-engine.Number(answers[0])+10, 24*3600*1000)
		due = time.After(time.Duration(ms) * time.Millisecond)
	}
	return false, due, nil
}

// Outcome is the result of a task that has ended, or the error that says how else
// it ended; of one that lives, [refusal.ErrNotEnded].
func (r *Record) Outcome() ([]byte, error) {
	switch {
	case r == nil: // as GetAll has it in its list
		return nil, refusal.Failed("result", "", refusal.ErrNotFound)
	case r.Status == Completed:
		return r.Result, nil
	case r.TimedOut && !(r.TimeoutType == "execution" && OnDeadline(r.Fields["on_deadline"]) == DeadlineFail):
		return nil, &TaskTimedOutError{TaskID: r.ID, Deadline: r.CompletedAt, StartedAt: r.StartedAt, Type: r.TimeoutType}
	case r.Status == Failed:
		return nil, &TaskFailedError{TaskID: r.ID, Kind: r.Kind, Reason: r.Reason, Code: r.Code, Err: errors.New(r.Error)}
	case r.Status == Cancelled:
		return nil, refusal.Failed("result", r.ID, fmt.Errorf("%w: %s", refusal.ErrCancelled, r.Error))
	}
	return nil, refusal.Failed("result", r.ID, fmt.Errorf("%w: it is %s", refusal.ErrNotEnded, r.Status))
}

// watches are those who wait for results. They share one subscription, which
// stands while there is one of them.
type watches struct {
	mu      sync.Mutex
	waiting map[string][]chan struct{}
	n       int
	ends    *engine.Subscription
}

// join adds who waits for a task. signal fires when it may have ended.
func (w *watches) join(ctx context.Context, q *Queue, id string) (signal <-chan struct{}, leave func(), err error) {
	w.mu.Lock()
	if w.n == 0 {
		channels := make([]string, q.Partitions())
		for p := range channels {
			channels[p] = q.engine.EndedChannel(p)
		}
		w.waiting = map[string][]chan struct{}{}
		w.ends = q.engine.Subscribe(channels, w.told)
	}
	w.n++
	mine := make(chan struct{}, 1)
	w.waiting[id] = append(w.waiting[id], mine)
	ends := w.ends
	w.mu.Unlock()

	leave = func() { w.leave(id, mine) }
	if err := ends.Await(ctx); err != nil {
		leave()
		return nil, nil, err
	}
	return mine, leave, nil
}

// leave takes one away; the last one ends the subscription.
func (w *watches) leave(id string, mine chan struct{}) {
	w.mu.Lock()
	w.waiting[id] = slices.DeleteFunc(w.waiting[id], func(c chan struct{}) bool { return c == mine })
	if len(w.waiting[id]) == 0 {
		delete(w.waiting, id)
	}
	w.n--
	var last *engine.Subscription
	if w.n == 0 {
		last = w.ends
	}
	w.mu.Unlock()
	if last != nil {
		// Outside of the lock, which told may be waiting for, and not waited for: a
		// server that hangs would hold up who has given up on it.
		go last.Stop()
	}
}

// told passes on that a task ended, or to all that they had better look.
func (w *watches) told(_, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id != "" {
		wake(w.waiting[id])
		return
	}
	for _, signals := range w.waiting {
		wake(signals)
	}
}

func wake(signals []chan struct{}) {
	for _, signal := range signals {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
}
