package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Deletion is the result of deleting the record of a task.
type Deletion struct {
	// RemovedAt is set if the task ended less than a minute ago. A reaper removes the record at this
	// instant. Otherwise the record is removed already, and RemovedAt is zero.
	RemovedAt time.Time
	// Err is set by DeleteAll: refusal.ErrNotFound, refusal.ErrNotEnded, refusal.ErrNeeded or
	// refusal.ErrBroken.
	Err error
}

// Delete removes the record of an ended task, with its payload and result, before its retention is
// over. A record stays for a minute after the task's end, because a program may still repeat a call
// about the task. During that minute the Deletion holds the instant at which the record will be
// removed.
//
// Delete returns
//   - [refusal.ErrNotEnded] if the task has not ended: cancel it first;
//   - [refusal.ErrNeeded] if a live owner can still read it, if children of the task or of its owner have not ended, or if its hook has not ended;
//   - [refusal.ErrNotFound] if there is no such task. This also happens if the reply of a call that removed the record was lost, and the call was repeated.
//
// The idempotency key of the task is kept for a day after the end. Until then a task with this key
// is not created.
func (q *Queue) Delete(ctx context.Context, id string) (Deletion, error) {
	if err := q.ready(ctx); err != nil {
		return Deletion{}, refusal.Failed("delete", "", err)
	}
	deletions, err := q.DeleteAll(ctx, []string{id})
	if err != nil {
		return Deletion{}, err
	}
	return deletions[0], refusal.Failed("delete", id, deletions[0].Err)
}

// DeleteAll deletes the records of a list of tasks, up to 500 in a round trip. If one of the ids cannot be
// an id of this namespace, it returns [refusal.ErrInvalid] and deletes nothing. After another error some
// records can be deleted and others not: call it again.
func (q *Queue) DeleteAll(ctx context.Context, list []string) ([]Deletion, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("delete all", "", err)
	}
	deletions := make([]Deletion, len(list))
	err := q.eachPartition(list, func(p int, ids []any, places []int) error {
		for len(ids) > 0 { // a reply ends early if much was removed
			reply, err := q.engine.Call(ctx, p, "delete", ids...)
			answers, err := engine.List(reply, err, 1)
			if err != nil {
				return err
			}
			if len(answers) > len(ids) {
				return fmt.Errorf("%d answers for %d tasks", len(answers), len(ids))
			}
			for i, answer := range answers {
				deletions[places[i]] = readDeletion(answer)
			}
			ids, places = ids[len(answers):], places[len(answers):]
		}
		return nil
	})
	if err != nil {
		return nil, refusal.Failed("delete", "", err)
	}
	return deletions, nil
}

func readDeletion(answer any) Deletion {
	words, err := engine.Words(answer, nil)
	if err != nil {
		return Deletion{Err: err}
	}
	switch word := engine.Text(words[0]); {
	case word == "DELETED":
		return Deletion{}
	case word == "LATER" && len(words) == 2:
		return Deletion{RemovedAt: engine.Instant(words[1])}
	case word == "MISSING":
		return Deletion{Err: refusal.ErrNotFound}
	case word == "LIVE" && len(words) == 2:
		return Deletion{Err: fmt.Errorf("%w: it is %s; cancel it, or wait until it has ended", refusal.ErrNotEnded, engine.Text(words[1]))}
	case word == "OWNED" && len(words) == 2:
		return Deletion{Err: fmt.Errorf("%w: its owner %s has not ended and can read it; delete it when the owner has ended",
			refusal.ErrNeeded, engine.Text(words[1]))}
	case word == "DRAINING" && len(words) == 2:
		return Deletion{Err: fmt.Errorf("%w: not all children of %s have ended; a reaper ends them, so delete it again later",
			refusal.ErrNeeded, engine.Text(words[1]))}
	case word == "HOOKED" && len(words) == 2:
		return Deletion{Err: fmt.Errorf("%w: its hook %s has not ended; delete it when the hook has ended", refusal.ErrNeeded, engine.Text(words[1]))}
	}
	return Deletion{Err: engine.Unexpected("answer to delete", words)}
}
