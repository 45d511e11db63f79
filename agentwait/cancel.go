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
	Cancelled        bool // this call cancelled the task
	AlreadyCompleted bool
	AlreadyFailed    bool
	AlreadyCancelled bool
	Value            T      // the task's result, if AlreadyCompleted
	Error            string // the task's error, if AlreadyFailed; the reason, if AlreadyCancelled
	Err              error  // the task does not exist, or its result cannot be decoded as T
}

// Cancel cancels children of the agent, and returns a result for each, in the order given. Children
// of a higher priority are cancelled first. If a task is not a child of the agent, Cancel returns
// ErrNotOwner and cancels nothing. Otherwise its error is the first Err of the results. A replay
// returns the same results.
//
// Cancel first creates scheduled children. It makes one call for up to 500 tasks, and another call
// to read the tasks that had ended. Without tasks it does nothing.
func Cancel[T any](a *Agent, reason string, futures ...*Future[T]) ([]CancelResult[T], error) {
	return cancelAll[T](a, reason, awaitables(futures))
}

// CancelAll is Cancel for tasks of several types. The Value of a task that had completed is its
// undecoded result.
func CancelAll(a *Agent, reason string, futures ...Awaitable) ([]CancelResult[[]byte], error) {
	return cancelAll[[]byte](a, reason, futures)
}

func cancelAll[T any](a *Agent, reason string, futures []Awaitable) ([]CancelResult[T], error) {
	if err := a.stopped(); err != nil || len(futures) == 0 {
		return nil, err
	}
	if err := a.checkFutures("task", futures); err != nil {
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

// The results of a cancellation in the journal.
const (
	isCancelled  = "cancelled"
	wasCompleted = "completed"
	wasFailed    = "failed"
	wasCancelled = "before" // cancelled before this call
	notThere     = "missing"
)

// cancelAnswers returns the result of the cancellation of each task: in a replay from the journal,
// otherwise from Redis.
func (a *Agent) cancelAnswers(ids []string, reason string) ([]string, error) {
	number, entry, ok := a.nextEntry()
	if !ok {
		return a.cancel(number, ids, reason)
	}
	kind, words, _ := strings.Cut(entry, " ")
	r, refused := readRefusal(entry)
	if kind != "cancel" && !(refused && r.digest == cancelDigest) {
		return nil, a.diverged(describeEntry(entry), "a call of Cancel")
	}
	a.unsent = nil // the earlier call of Cancel has created these children
	if refused {
		return nil, a.refusedAgain(r)
	}
	return strings.Fields(words), nil
}

// cancel cancels the tasks in Redis. The id of the call is made from the agent's id and the number
// of the journal entry. If the process dies before it gets the reply, the next run makes the same
// call again and gets the same reply.
func (a *Agent) cancel(number int64, ids []string, reason string) (answers []string, err error) {
	if err := a.send(); err != nil {
		return nil, a.recordRefusal(number, cancelDigest, "", err)
	}
	cancellations, err := a.q.CancelAs(a, a.job.ID+"/"+strconv.FormatInt(number, 10), a.job.ID, ids, reason)
	if err != nil {
		return nil, a.recordRefusal(number, cancelDigest, "", a.callError(err))
	}
	for _, c := range cancellations {
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

// cancelResults converts the answers to results, and reads the records of the tasks that had ended.
func cancelResults[T any](a *Agent, ids, answers []string) ([]CancelResult[T], error) {
	var names []string
	for i, id := range ids {
		if answers[i] != isCancelled && answers[i] != notThere {
			names = append(names, nameOf(id))
		}
	}
	records, err := a.readChildren(names)
	if err != nil {
		return nil, a.callError(err)
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

// setState records the result of Cancel for a child, which Future.State returns.
func (a *Agent) setState(name, answer string, record *queue.Record) {
	if answer == isCancelled {
		a.cancelled[name] = true
	} else if record != nil && (a.records[name] == nil || !a.records[name].Status.Ended()) {
		a.records[name] = record
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
