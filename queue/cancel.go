package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// maxReason is the most bytes of a reason, which is kept with each task that it ends.
const maxReason = 8192

// Cancellation says what cancelling a task came to. Exactly one is the case: it was
// live and Done is true, or it had ended, and Status and what belongs to it tell how.
type Cancellation struct {
	Done   bool
	Status Status
	// GraceEnds is when a task that still runs is cancelled at the latest: its Status
	// is Running, and whatever its handler returns it will be CANCELLED.
	GraceEnds time.Time
	Result    []byte // if it had COMPLETED
	Error     string // if it had FAILED, or was CANCELLED before
	Err       error  // in lists: refusal.ErrNotFound, refusal.ErrBroken
}

// Cancel ends a task as CANCELLED. A running handler is told at once; if the task has a
// CancelGrace it keeps its claim that long, to clean up. The reason
// is kept as the task's error. A task that had ended stays as it is, and the
// answer tells how it ended; one that is out of time ends as that first.
func (q *Queue) Cancel(ctx context.Context, id, reason string) (Cancellation, error) {
	if err := q.ready(ctx); err != nil {
		return Cancellation{}, refusal.Failed("cancel", "", err)
	}
	all, err := q.CancelAll(ctx, []string{id}, reason)
	if err != nil {
		return Cancellation{}, err
	}
	return all[0], refusal.Failed("cancel", id, all[0].Err)
}

// CancelAll cancels a list, 500 a round trip. An id that cannot be one of this namespace is refused, and nothing
// is cancelled. If it returns another error, which is that of a call, some tasks may be cancelled and others not:
// call it again.
func (q *Queue) CancelAll(ctx context.Context, list []string, reason string) ([]Cancellation, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("cancel all", "", err)
	}
	return q.cancelAs(ctx, NewCall(), "", list, reason)
}

func (q *Queue) cancelAs(ctx context.Context, call, owner string, ids []string, reason string) ([]Cancellation, error) {
	if limit := min(q.config.MaxBytes, maxReason); len(reason) > limit {
		return nil, refusal.Failed("cancel", "", refusal.Invalid("reason", "has %d bytes, the limit is %d", len(reason), limit))
	}
	if err := owned(owner, ids); err != nil {
		return nil, refusal.Failed("cancel", "", err)
	}
	all := make([]Cancellation, len(ids))
	err := q.eachPartition(ids, func(p int, some []any, places []int) error {
		reply, err := q.engine.Call(ctx, p, "cancel", append([]any{call, reason, owner}, some...)...)
		answers, err := engine.List(reply, err, 1)
		if err != nil {
			return err
		}
		answers = answers[1:] // the first says what timed out and who was woken
		for i, place := range places {
			if i >= len(answers) {
				return fmt.Errorf("%d answers for %d tasks", len(answers), len(places))
			}
			all[place] = readCancellation(answers[i])
			if errors.Is(all[place].Err, refusal.ErrNotOwner) {
				return all[place].Err
			}
		}
		return nil
	})
	return all, refusal.Failed("cancel", "", err)
}

// owned checks that all ids are of children of an owner, if there is one: an id says whose it is.
func owned(owner string, ids []string) error {
	for _, id := range ids {
		if owner != "" && names.OwnerOf(id) != owner {
			return fmt.Errorf("%w: %s", refusal.ErrNotOwner, refusal.Clip(id))
		}
	}
	return nil
}

func readCancellation(answer any) Cancellation {
	words, err := engine.List(answer, nil, 1)
	if err != nil {
		return Cancellation{Err: err}
	}
	switch word := engine.Text(words[0]); {
	case word == "CANCELLED":
		return Cancellation{Done: true, Status: Cancelled}
	case word == "CANCELLING" && len(words) == 2:
		return Cancellation{Done: true, Status: Running, GraceEnds: engine.Instant(words[1])}
	case word == "ALREADY" && len(words) == 3:
		c := Cancellation{Status: Status(engine.Text(words[1]))}
		if c.Status == Completed {
			c.Result = []byte(engine.Text(words[2]))
		} else {
			c.Error = engine.Text(words[2])
		}
		return c
	case word == "MISSING":
		return Cancellation{Err: refusal.ErrNotFound}
	case word == "BROKEN":
		return Cancellation{Err: refusal.ErrBroken}
	case word == "FOREIGN" && len(words) == 2:
		return Cancellation{Err: fmt.Errorf("%w: %s", refusal.ErrNotOwner, engine.Text(words[1]))}
	}
	return Cancellation{Err: fmt.Errorf("cancel answered %.100v", answer)}
}
