package agentwait

import (
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

func awaitables[T any](futures []*Future[T]) []Awaitable {
	members := make([]Awaitable, len(futures))
	for i, f := range futures {
		members[i] = f
	}
	return members
}

func newAsk[T any](on Waiter, mode queue.Mode, need int, futures []*Future[T]) *ask {
	a, policy := on.waiter()
	return &ask{agent: a, policy: policy, mode: mode, need: need, members: awaitables(futures)}
}

// JoinAll waits for all of the tasks, and returns their results in the order given. If
// one of them has not completed it returns the error of the first that had not, in the
// order they ended: when the last has ended, at once for one that had failed before the
// wait, and with Wait.FailFast as soon as one fails. No tasks are no wait.
func JoinAll[T any](on Waiter, futures ...*Future[T]) ([]T, error) {
	if len(futures) == 0 {
		return []T{}, nil
	}
	r, err := join[T](newAsk(on, queue.WaitAll, 0, futures))
	if err != nil {
		return nil, err
	}
	values := make([]T, len(futures))
	for i := range futures {
		values[i] = outcomeOf[T](r, i).Value
	}
	return values, nil
}

// join waits for all, and returns the error of the first that failed the wait.
func join[T any](k *ask) (*result, error) {
	if k.policy.FailFast {
		k.mode = queue.WaitFailFast
	}
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	if r.outcome.Reason == "timed_out" && !k.policy.Proceed {
		return nil, timedOut[T](r, "")
	}
	if all := failures[T](k, r); len(all) > 0 {
		return nil, all[0]
	}
	return r, nil
}

// done tells whether an ending other than completion counts as that.
func (k *ask) done(place int, o interface{ ending() Ending }) bool {
	_, _, more := k.members[place].member()
	return (k.policy.ContinueOn|more)&o.ending() != 0
}

// excused tells whether an ending other than completion is none that fails the wait.
func (k *ask) excused(place int, o interface{ ending() Ending }) bool {
	return k.done(place, o) || o.ending() == OnCancel && k.policy.SkipCancelled
}

// ending is how it ended, 0 for completion.
func (o *Outcome[T]) ending() Ending {
	switch {
	case o.Status == queue.Cancelled:
		return OnCancel
	case o.Status != queue.Failed:
		return 0
	}
	// A run whose policy is to fail has failed when its time was up (lua/include/regard.lua).
	if f, ok := o.Err.(*queue.TaskFailedError); ok && (f.Reason == "failed" || f.Reason == "timeout") {
		return OnFailed
	} else if o.TimedOut {
		return OnTimeout
	}
	return OnError
}

// Winner is the task that decided a wait, with its result, and the others.
type Winner[T any] struct {
	Index int
	ID    string
	Value T
	// Rest are the other tasks, in the order given. Select has cancelled those that had
	// not ended, unless Wait.Losers is KeepLosers; Cancel tells what became of one.
	Rest []*Future[T]
}

// Select waits for the first task to end and cancels the others. Its error is that of
// the task, if it did not complete.
func Select[T any](on Waiter, futures ...*Future[T]) (Winner[T], error) {
	k := newAsk(on, queue.WaitAny, 0, futures)
	if k.policy.Losers == "" {
		k.policy.Losers = CancelLosers
	}
	return pick("select", k, futures)
}

// SelectOK waits for the first task to complete, and lets the others go on. If none does
// it returns an *AllTasksFailedError.
func SelectOK[T any](on Waiter, futures ...*Future[T]) (Winner[T], error) {
	return pick("select_ok", newAsk(on, queue.WaitAnyOK, 0, futures), futures)
}

func pick[T any](name string, k *ask, futures []*Future[T]) (w Winner[T], err error) {
	if len(futures) == 0 {
		return w, fmt.Errorf("%w: %s requires at least one future", queue.ErrInvalid, name)
	}
	r, err := k.run()
	if err != nil {
		return w, err
	}
	switch r.outcome.Reason {
	case "timed_out":
		return w, timedOut[T](r, "")
	case "impossible":
		return w, allFailed[T](k, r)
	}
	w.Index = r.places()[r.outcome.Winner]
	for i, f := range futures {
		if i != w.Index {
			w.Rest = append(w.Rest, f)
		}
	}
	o := outcomeOf[T](r, w.Index)
	w.ID, w.Value = o.ID, o.Value
	if k.done(w.Index, &o) {
		return w, nil
	}
	return w, o.Err
}

// failures are the errors of those that failed the wait, in the order they ended.
func failures[T any](k *ask, r *result) (all []error) {
	for _, i := range r.inOrder() {
		if o := outcomeOf[T](r, i); o.Err != nil && !k.excused(i, &o) {
			all = append(all, o.Err)
		}
	}
	return all
}

func allFailed[T any](k *ask, r *result) error {
	all := failures[T](k, r)
	e := &AllTasksFailedError{All: all}
	if len(all) > 0 {
		e.First = all[0]
	}
	return e
}

// JoinN waits until n of the tasks have completed, and returns those, in the order they
// did. The others go on. As soon as n is impossible it returns a *WaitImpossibleError.
func JoinN[T any](on Waiter, n int, futures ...*Future[T]) ([]Outcome[T], error) {
	k := newAsk(on, queue.WaitNOfM, n, futures)
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	var done []Outcome[T]
	for _, i := range r.inOrder() {
		if r.outcome.Reason == "satisfied" && len(done) == n {
			break // of thousands more may have completed before the wait began
		}
		switch o := outcomeOf[T](r, i); {
		case o.Err == nil || k.done(i, &o):
			done = append(done, o)
		case o.Status == queue.Completed: // it counted, and its result cannot be read
			return nil, o.Err
		}
	}
	switch {
	case r.outcome.Reason == "timed_out" && !k.policy.Proceed:
		return done, timedOut[T](r, "")
	case r.outcome.Reason == "impossible":
		return done, impossible[T](k, r)
	}
	return done, nil
}

func impossible[T any](k *ask, r *result) error {
	all := failures[T](k, r)
	e := &WaitImpossibleError{Need: k.need, Possible: len(r.places()) - len(all)}
	if len(all) > 0 {
		e.First = all[0]
	}
	return e
}

// Settled is what became of all tasks of a wait. Outcomes are in the order given; the
// lists hold them by how they ended.
type Settled[T any] struct {
	Outcomes  []Outcome[T]
	Completed []Outcome[T]
	Failed    []Outcome[T] // timeouts among them
	Cancelled []Outcome[T] // by the wait among them: Outcome.Late
	Pending   []Outcome[T] // had not ended when the wait was over, and go on
	TimedOut  bool         // the wait came to its limit
	order     []int        // of the ends
}

// FailedOrCancelled are the tasks that have ended without a result, in the order given.
func (s *Settled[T]) FailedOrCancelled() (all []Outcome[T]) {
	for _, o := range s.Outcomes {
		if !o.Late && o.Status != queue.Completed {
			all = append(all, o)
		}
	}
	return all
}

// SkipCancelled are the tasks that have completed, or the error of the first that failed.
func (s *Settled[T]) SkipCancelled() ([]Outcome[T], error) {
	for _, i := range s.order {
		if o := s.Outcomes[i]; o.Err != nil && o.Status != queue.Cancelled {
			return nil, o.Err
		}
	}
	return s.Completed, nil
}

// JoinAllSettled waits until all tasks have ended, however they end, and tells what
// became of each. If the wait comes to its limit, what there is by then is returned, with
// a *WaitTimeoutError unless Wait.Proceed says that this is all right.
func JoinAllSettled[T any](on Waiter, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newAsk(on, queue.WaitSettled, 0, futures))
}

// JoinNSettled is JoinAllSettled until n of the tasks have ended.
func JoinNSettled[T any](on Waiter, n int, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newAsk(on, queue.WaitNSettled, n, futures))
}

// Peek is JoinAllSettled without the wait: what has become of the tasks so far.
func Peek[T any](on Waiter, futures ...*Future[T]) (*Settled[T], error) {
	return settle[T](newAsk(on, queue.WaitPeek, 0, futures))
}

func settle[T any](k *ask) (*Settled[T], error) {
	if len(k.members) == 0 {
		return &Settled[T]{}, nil
	}
	r, err := k.run()
	if err != nil {
		return nil, err
	}
	s := settledOf[T](r)
	if s.TimedOut && !k.policy.Proceed {
		return s, timedOut[T](r, "")
	}
	return s, nil
}

func settledOf[T any](r *result) *Settled[T] {
	s := &Settled[T]{order: r.inOrder(), TimedOut: r.outcome.Reason == "timed_out"}
	for i := range r.members {
		o := outcomeOf[T](r, i)
		s.Outcomes = append(s.Outcomes, o)
		list := &s.Failed
		switch {
		case o.Late && o.Status == queue.Pending:
			list = &s.Pending
		case o.Late || o.Status == queue.Cancelled:
			list = &s.Cancelled
		case o.Status == queue.Completed:
			list = &s.Completed
		}
		*list = append(*list, o)
	}
	return s
}

// Await waits for one task.
func Await[T any](on Waiter, future *Future[T]) (v T, err error) {
	all, err := JoinAll(on, future)
	if err != nil {
		return v, err
	}
	return all[0], nil
}

// Run schedules a task and waits for it.
func Run[T any](on Waiter, in any, task queue.Task) (T, error) {
	a, _ := on.waiter()
	return Await(on, Schedule[T](a, in, task))
}

// AwaitAll waits for tasks of several types: all of them, as JoinAll does. Value tells
// the result of each.
func AwaitAll(on Waiter, futures ...Awaitable) error {
	if len(futures) == 0 {
		return nil
	}
	a, policy := on.waiter()
	_, err := join[[]byte](&ask{agent: a, policy: policy, mode: queue.WaitAll, members: futures})
	return err
}

// Value is the result of a task that a wait has told of, or why it has none.
func Value[T any](a *Agent, f *Future[T]) (v T, err error) {
	r := a.known[f.name()]
	if r == nil || !r.Status.Ended() {
		return v, fmt.Errorf("%w: no wait has told of %s", ErrTaskStillRunning, f.id)
	}
	o := outcomeOf[T](&result{agent: a, members: []Awaitable{f}}, 0)
	return o.Value, o.Err
}

// Sleep waits for a time. Nothing has to be alive for it.
func Sleep(a *Agent, d time.Duration) error {
	if d <= 0 {
		return a.gone
	}
	c := a.schedule(queue.Task{Kind: "sleep", Queue: a.job.Queue, Timer: true, Delay: max(d, time.Millisecond)}, nil)
	_, err := Await(a, &Future[[]byte]{child: c})
	return err
}
