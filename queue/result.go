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

// lookAgain is the interval at which Result checks a task without a message. Usually a lost message
// also means a broken connection, after which Result checks at once. When another node of a cluster
// dies, a message is lost and the connection stays.
const lookAgain = 5 * time.Second

// Result waits until a task has ended, and returns its result. If the task did not complete, Result
// returns *TaskTimedOutError, *TaskFailedError or [refusal.ErrCancelled]. If there is no such task,
// it returns [refusal.ErrNotFound].
//
// Result waits until ctx ends, even while Redis cannot be reached. If the task has no time limit, and
// ctx has none either, Result can wait for ever. When ctx ends, the error is [refusal.ErrWaitOver] and the
// cause of ctx, and has the text of the newest error of a call. It never is [refusal.ErrUnknown] or
// [refusal.ErrUnavailable]. Result returns at once if waiting does not help ([refusal.Permanent]).
//
// Redis notifies Result of the task's end. Concurrent callers in a process share one subscription.
// Result also checks the task every five seconds, because a failover of Redis can lose the message
// or the task's end, and a user can lose the right to the channel. If a failover undid the end of
// the task, Result waits for the next end.
//
// Result needs no reaper to notice a timeout: when the task's time is up, Result checks the task,
// and this call ends it. Only the children of an ended owner need a reaper. Result for such a child
// returns when the reaper has ended it.
func (q *Queue) Result(ctx context.Context, id string) ([]byte, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("result", "", err)
	}
	r, err := q.wait(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.Outcome()
}

// Wait waits until a task has ended, as Result does, and returns its record.
func (q *Queue) Wait(ctx context.Context, id string) (*Record, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("result", "", err)
	}
	return q.wait(ctx, id)
}

func (q *Queue) wait(ctx context.Context, id string) (*Record, error) {
	p, err := names.PartitionIn(id, q.Partitions())
	if err != nil {
		return nil, refusal.Failed("result", id, err)
	}
	// Join before the first look, because an end between the two would otherwise be missed.
	signal, leave, err := q.watches.join(ctx, q, id)
	if err != nil {
		return nil, refusal.Failed("result", id, err)
	}
	defer leave()
	var newest error // of a look that did not end with ctx
	for {
		r, due, err := q.endedRecord(ctx, p, id)
		switch {
		case err == nil && r != nil:
			return r, nil
		case ctx.Err() != nil:
			return nil, refusal.Failed("result", id, q.gaveUp(ctx, newest))
		case err == nil:
		case !errors.Is(err, refusal.ErrUnavailable) && !errors.Is(err, refusal.ErrUnknown):
			return nil, refusal.Failed("result", id, err)
		default:
			// Redis is unreachable: try again in a second.
			due = time.After(time.Second)
		}
		newest = err
		select {
		case <-signal:
		case <-due:
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return nil, refusal.Failed("result", id, q.gaveUp(ctx, newest))
		}
	}
}

// gaveUp returns the error of a wait whose context has ended. It has only the text of the newest error of a look, because a
// look changes nothing that a caller must find out about.
func (q *Queue) gaveUp(ctx context.Context, newest error) error {
	if newest == nil {
		return fmt.Errorf("%w: %w", refusal.ErrWaitOver, q.engine.InVain(ctx))
	}
	if errors.Is(newest, refusal.ErrUnknown) {
		newest = errors.New("no answer from Redis")
	}
	return fmt.Errorf("%w: %w, while %v", refusal.ErrWaitOver, context.Cause(ctx), newest)
}

// endedRecord returns the record of a task that has ended. If the task has not ended, r is nil, and
// due fires when its time is up.
func (q *Queue) endedRecord(ctx context.Context, p int, id string) (r *Record, due <-chan time.Time, err error) {
	ended, due, err := q.look(ctx, p, id)
	if err != nil || !ended {
		return nil, due, err
	}
	records, err := q.GetAll(ctx, []string{id})
	switch {
	case err != nil:
		return nil, nil, errors.Unwrap(err)
	case records[0] == nil:
		return nil, nil, refusal.ErrNotFound
	case !records[0].Status.Ended():
		return nil, time.After(time.Second), nil // a failover undid the end meanwhile
	}
	return records[0], nil, nil
}

// look marks a task as watched, so that its end is published, and reports whether it has ended. If
// it has not, due fires when its time is up.
func (q *Queue) look(ctx context.Context, p int, id string) (ended bool, due <-chan time.Time, err error) {
	reply, err := q.engine.Call(ctx, p, "watch", id)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return false, nil, err
	}
	state, err := engine.Words(answers[1], nil)
	if err != nil {
		return false, nil, err
	}
	if len(state) < 2 {
		return false, nil, engine.Unexpected("answer to watch", state)
	}
	switch status := Status(engine.Text(state[0])); {
	case status == "":
		return false, nil, refusal.ErrNotFound
	case status.Ended():
		return true, nil, nil
	}
	if until := engine.Number(state[1]); until > 0 {
		// The task times out one ms after until. Another 9 ms leave a reaper time to end it first. A
		// day is the maximum, because a Duration cannot hold every timeout that a task can have.
		ms := min(until-engine.Number(answers[0])+10, 24*3600*1000)
		due = time.After(time.Duration(ms) * time.Millisecond)
	}
	return false, due, nil
}

// failedRun is the error of a task with [DeadlineFail] whose own time was up (lua/task/ending.lua).
const failedRun = "Workflow exceeded timeout"

// Outcome returns the result of a task that has ended. If the task did not complete, it returns the
// same errors as [Queue.Result]. It returns [refusal.ErrNotEnded] for a live task, and
// [refusal.ErrNotFound] if r is nil.
func (r *Record) Outcome() ([]byte, error) {
	switch {
	case r == nil: // GetAll returns nil for a task that does not exist
		return nil, refusal.Failed("result", "", refusal.ErrNotFound)
	case r.Status == Completed:
		return r.Result, nil
	case r.TimedOut && r.Error != failedRun:
		return nil, &TaskTimedOutError{TaskID: r.ID, Deadline: r.CompletedAt, StartedAt: r.StartedAt, Type: r.TimeoutType}
	case r.Status == Failed:
		return nil, &TaskFailedError{TaskID: r.ID, Kind: r.Kind, Reason: r.Reason, Code: r.Code, Err: errors.New(r.Error)}
	case r.Status == Cancelled:
		return nil, refusal.Failed("result", r.ID, fmt.Errorf("%w: %s", refusal.ErrCancelled, r.Error))
	}
	return nil, refusal.Failed("result", r.ID, fmt.Errorf("%w: it is %s", refusal.ErrNotEnded, r.Status))
}

// watches holds the callers that wait for results. They share one subscription, which exists only
// while somebody waits.
type watches struct {
	mu       sync.Mutex
	waiting  map[string][]chan struct{}
	n        int
	messages *engine.Subscription // of tasks that ended
}

// join adds a caller that waits for a task. signal fires when the task may have ended.
func (w *watches) join(ctx context.Context, q *Queue, id string) (signal <-chan struct{}, leave func(), err error) {
	w.mu.Lock()
	if w.n == 0 {
		channels := make([]string, q.Partitions())
		for p := range channels {
			channels[p] = q.engine.EndedChannel(p)
		}
		w.waiting = map[string][]chan struct{}{}
		w.messages = q.engine.Subscribe(channels, w.notify)
	}
	w.n++
	mine := make(chan struct{}, 1)
	w.waiting[id] = append(w.waiting[id], mine)
	messages := w.messages
	w.mu.Unlock()

	leave = func() { w.leave(id, mine) }
	// Without the lock, because Await can wait for the server, and other callers must not wait for
	// it.
	if err := messages.Await(ctx); err != nil {
		leave()
		return nil, nil, fmt.Errorf("%w: %w", refusal.ErrWaitOver, err)
	}
	return mine, leave, nil
}

// leave removes a caller. The last one ends the subscription.
func (w *watches) leave(id string, mine chan struct{}) {
	w.mu.Lock()
	w.waiting[id] = slices.DeleteFunc(w.waiting[id], func(c chan struct{}) bool { return c == mine })
	if len(w.waiting[id]) == 0 {
		delete(w.waiting, id)
	}
	w.n--
	var subscription *engine.Subscription
	if w.n == 0 {
		subscription = w.messages
	}
	w.mu.Unlock()
	if subscription != nil {
		// Stop is called without the lock, because notify may wait for the lock. It runs in a
		// goroutine, because it can wait for a server that hangs, and the caller has given up
		// waiting.
		go subscription.Stop()
	}
}

// notify wakes the callers that wait for a task. An empty id means that messages may have been lost,
// so notify wakes all callers, and they check their tasks.
func (w *watches) notify(_, id string) {
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
