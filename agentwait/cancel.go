package agentwait

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// CancelResult is the result of cancelling one task. Exactly one of the first four fields is true,
// unless the task does not exist.
type CancelResult[T any] struct {
	Cancelled        bool // by this call
	AlreadyCompleted bool
	AlreadyFailed    bool
	AlreadyCancelled bool
	Value            T      // the task's result, if AlreadyCompleted
	Error            string // the task's error, if AlreadyFailed; the reason, if AlreadyCancelled
	Err              error  // the task does not exist, or its result cannot be decoded as T
}

// Cancel cancels children of the agent, and returns the result of each in the order given. Children of
// a higher priority are cancelled first. If a task is not a child of the agent, Cancel returns
// ErrNotOwner and cancels nothing. Otherwise its error is the first Err of the results. A replay
// returns the same. Without tasks Cancel does nothing. It makes one call for 500 tasks, one more to read
// those that had ended, and first creates scheduled children.
func Cancel[T any](a *Agent, reason string, futures ...*Future[T]) ([]CancelResult[T], error) {
	return cancelAll[T](a, reason, awaitables(futures))
}

// CancelAll is like Cancel, for tasks of several types. The Value of a task that had completed is its
// result in bytes.
func CancelAll(a *Agent, reason string, futures ...Awaitable) ([]CancelResult[[]byte], error) {
	return cancelAll[[]byte](a, reason, futures)
}

func cancelAll[T any](a *Agent, reason string, futures []Awaitable) ([]CancelResult[T], error) {
	if err := a.barred(); err != nil || len(futures) == 0 {
		return nil, err
	}
	if err := a.vet("task", futures); err != nil {
		return nil, err
	}
	ids := make([]string, len(futures))
	for i, f := range futures {
		c, _, _ := f.member()
		ids[i] = c.id
	}
	answers, err := a.cancelAnswers(ids, reason)
	if err != nil {
		return nil, err
	}
	if len(answers) != len(ids) {
		return nil, a.diverged(fmt.Sprintf("a call of Cancel for %d tasks", len(answers)), fmt.Sprintf("one for %d", len(ids)))
	}
	return cancelResults[T](a, ids, answers)
}

// The result of a cancellation, as the journal stores it.
const (
	isCancelled  = "cancelled"
	wasCompleted = "completed"
	wasFailed    = "failed"
	wasCancelled = "before"
	notThere     = "missing"
)

// cancelAnswers returns the result of the cancellation of each task: in a replay from the journal,
// otherwise from Redis.
func (a *Agent) cancelAnswers(ids []string, reason string) ([]string, error) {
	number, entry, ok := a.remembered()
	if !ok {
		return a.cancel(number, ids, reason)
	}
	kind, words, _ := strings.Cut(entry, " ")
	r, refused := readRefusal(entry)
	if kind != "cancel" && !(refused && r.digest == ofCancel) {
		return nil, a.diverged(what(entry), "a call of Cancel")
	}
	a.unsent = nil // the earlier call of Cancel has created these children
	if refused {
		return nil, a.refusedAgain(r)
	}
	return strings.Fields(words), nil
}

// cancel cancels the tasks in Redis. The call is named after the journal entry: if the process dies
// before it gets the reply, the next run makes the same call again and gets the same reply.
func (a *Agent) cancel(number int64, ids []string, reason string) (answers []string, err error) {
	if err := a.send(); err != nil {
		return nil, a.recordRefusal(number, ofCancel, "", err)
	}
	all, err := a.q.Attempts().CancelAs(a, a.job.ID+"/"+strconv.FormatInt(number, 10), a.job.ID, ids, reason)
	if err != nil {
		return nil, a.recordRefusal(number, ofCancel, "", a.trouble(err))
	}
	for _, c := range all {
		word := notThere
		switch {
		case c.Err != nil:
		case c.Done:
			word = isCancelled
		case c.Status == queue.Completed:
			word = wasCompleted
		case c.Status == queue.Cancelled:
			word = wasCancelled
		case c.Status == queue.Failed:
			word = wasFailed
		}
		answers = append(answers, word)
	}
	a.record(number, []byte("cancel "+strings.Join(answers, " ")))
	return answers, nil
}

// cancelResults makes the results from the answers, and reads the records of tasks that had ended.
func cancelResults[T any](a *Agent, ids, answers []string) ([]CancelResult[T], error) {
	var names []string
	for i, id := range ids {
		if answers[i] != isCancelled && answers[i] != notThere {
			names = append(names, nameOf(id))
		}
	}
	records, err := a.q.Attempts().Children(a, a.job.ID, names)
	if err != nil {
		return nil, a.trouble(err)
	}
	results := make([]CancelResult[T], len(ids))
	for i, id := range ids {
		a.setState(nameOf(id), answers[i], records[nameOf(id)])
		results[i] = cancelResult[T](answers[i], records[nameOf(id)])
		if e := results[i].Err; e != nil && err == nil {
			err = fmt.Errorf("task %d, %s: %w", i, id, e)
		}
	}
	return results, err
}

// setState records what Cancel has reported of a child, for Future.State.
func (a *Agent) setState(name, answer string, record *queue.Record) {
	if answer == isCancelled {
		a.cancelled[name] = true
	} else if record != nil && (a.known[name] == nil || !a.known[name].Status.Ended()) {
		a.known[name] = record
	}
}

func cancelResult[T any](answer string, record *queue.Record) (r CancelResult[T]) {
	switch {
	case answer == isCancelled:
		r.Cancelled = true
	case answer == notThere || record == nil:
		r.Err = refusal.ErrNotFound
	case answer == wasCompleted:
		r.AlreadyCompleted = true
		r.Value, r.Err = decode[T](record.Result)
	case answer == wasCancelled:
		r.AlreadyCancelled, r.Error = true, record.Error
	case answer == wasFailed:
		r.AlreadyFailed, r.Error = true, record.Error
	default:
		r.Err = errors.New("the journal has a result of Cancel that this program does not know: " + answer)
	}
	return r
}
