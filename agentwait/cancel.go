package agentwait

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// CancelResult is what cancelling a task came to: exactly one of the first four holds,
// unless there is an Err.
type CancelResult[T any] struct {
	Cancelled        bool // by this call
	AlreadyCompleted bool
	AlreadyFailed    bool
	AlreadyCancelled bool
	Value            T      // of AlreadyCompleted
	Error            string // of AlreadyFailed, and the reason of AlreadyCancelled
	Err              error  // there is no such task, or its result is no T
}

// Cancel cancels tasks of the agent, 500 in one round trip, and tells what each came to, in
// the order given. They are cancelled in order of their priority, 3 first. If one of them
// is not the agent's nothing is done. The error is the first Err of the results. A replay
// gets the same answers. No tasks are nothing to do.
func Cancel[T any](a *Agent, reason string, futures ...*Future[T]) ([]CancelResult[T], error) {
	return cancelAll[T](a, reason, awaitables(futures))
}

// CancelAll is Cancel for tasks of several types. What one gave that had completed are the
// bytes of its result.
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

// What became of a task, as the journal keeps it.
const (
	isCancelled  = "cancelled"
	wasCompleted = "completed"
	wasFailed    = "failed"
	wasCancelled = "before"
	notThere     = "missing"
)

// cancelAnswers are what became of the tasks: from the journal in a replay, otherwise from Redis.
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
	a.unsent = nil // this made them then
	if refused {
		return nil, a.refusedAgain(r)
	}
	return strings.Fields(words), nil
}

// cancel asks Redis. The call has the name of the entry, so that one whose answer was lost
// with the process is the same again.
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

// cancelResults adds what those that had ended gave.
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
		a.tellState(nameOf(id), answers[i], records[nameOf(id)])
		results[i] = cancelResult[T](answers[i], records[nameOf(id)])
		if e := results[i].Err; e != nil && err == nil {
			err = fmt.Errorf("task %d, %s: %w", i, id, e)
		}
	}
	return results, err
}

// tellState keeps what a call of Cancel has told of a child.
func (a *Agent) tellState(name, answer string, record *queue.Record) {
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
		r.Err = errors.New("the journal tells of a cancellation that this program does not know: " + answer)
	}
	return r
}
