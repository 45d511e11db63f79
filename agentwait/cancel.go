package agentwait

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
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
// gets the same answers.
func Cancel[T any](a *Agent, reason string, futures ...*Future[T]) ([]CancelResult[T], error) {
	if a.gone != nil {
		return nil, a.gone
	}
	ids := make([]string, len(futures))
	for i, f := range futures {
		switch {
		case f.err != nil:
			return nil, fmt.Errorf("task %d: %w", i, f.err)
		case f.agent != a.job.ID:
			return nil, fmt.Errorf("task %d: %w: %s", i, ErrNotOwner, f.id)
		}
		ids[i] = f.id
	}
	number, entry, ok := a.remembered()
	answers, err := a.cancelled(entry)
	if !ok {
		answers, err = a.cancel(number, ids, reason)
	}
	if err != nil {
		return nil, err
	}
	if len(answers) != len(futures) {
		return nil, a.diverged(fmt.Sprintf("a call of Cancel for %d tasks", len(answers)), fmt.Sprintf("one for %d", len(futures)))
	}
	return cancelResults(a, futures, answers)
}

// What became of a task, as the journal keeps it.
const (
	isCancelled  = "cancelled"
	wasCompleted = "completed"
	wasFailed    = "failed"
	wasCancelled = "before"
	notThere     = "missing"
)

// cancel asks Redis. The call has the name of the entry, so that one whose answer was lost
// with the process is the same again.
func (a *Agent) cancel(number int64, ids []string, reason string) (answers []string, err error) {
	if err := a.Start(); err != nil {
		return nil, err
	}
	all, err := a.q.CancelAs(a, a.job.ID+" "+strconv.FormatInt(number, 10), a.job.ID, ids, reason)
	if err != nil {
		return nil, a.trouble(err)
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

// cancelled reads the answers of an earlier run.
func (a *Agent) cancelled(entry string) ([]string, error) {
	words := strings.Fields(entry)
	if len(words) == 0 || words[0] != "cancel" {
		if entry == "" {
			return nil, nil
		}
		return nil, a.diverged(what(entry), "a call of Cancel")
	}
	return words[1:], nil
}

// cancelResults adds what those that had ended gave.
func cancelResults[T any](a *Agent, futures []*Future[T], answers []string) ([]CancelResult[T], error) {
	var names []string
	for i, f := range futures {
		if answers[i] != isCancelled && answers[i] != notThere {
			names = append(names, f.name())
		}
	}
	records, err := a.q.Children(a, a.job.ID, names)
	if err != nil {
		return nil, a.trouble(err)
	}
	results := make([]CancelResult[T], len(futures))
	for i, f := range futures {
		results[i] = cancelResult[T](answers[i], records[f.name()])
		if e := results[i].Err; e != nil && err == nil {
			err = fmt.Errorf("task %d, %s: %w", i, f.id, e)
		}
	}
	return results, err
}

func cancelResult[T any](answer string, record *queue.Record) (r CancelResult[T]) {
	switch {
	case answer == isCancelled:
		r.Cancelled = true
	case answer == notThere || record == nil:
		r.Err = queue.ErrNotFound
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
