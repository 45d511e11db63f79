package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// maxReason is the greatest number of bytes of a reason. It is small, because the reason is stored
// with each task that the call ends.
const maxReason = 8192

// Cancellation is the result of cancelling a task. Done is true if the task was live. Otherwise
// the task had ended before; Status, Result and Error say how.
type Cancellation struct {
	Done   bool
	Status Status
	// GraceEnds is set if the handler still runs in the task's CancelGrace. Then Status is Running.
	// The task will be CANCELLED whatever the handler returns, at GraceEnds at the latest.
	GraceEnds time.Time
	Result    []byte // if it had COMPLETED
	Error     string // if it had FAILED, or was CANCELLED before
	Err       error  // set by CancelAll: refusal.ErrNotFound or refusal.ErrBroken
}

// Cancel ends a task as CANCELLED. The context of a running handler ends at once. If the task has a
// CancelGrace, it keeps its claim that long, so that the handler can clean up. The reason is stored
// as the task's error.
//
// A task that has ended is not changed, and the Cancellation reports how it ended. A task whose time
// is up is not cancelled: it ends as FAILED by its timeout.
func (q *Queue) Cancel(ctx context.Context, id, reason string) (Cancellation, error) {
	if err := q.ready(ctx); err != nil {
		return Cancellation{}, refusal.Failed("cancel", "", err)
	}
	cancellations, err := q.CancelAll(ctx, []string{id}, reason)
	if err != nil {
		return Cancellation{}, err
	}
	return cancellations[0], refusal.Failed("cancel", id, cancellations[0].Err)
}

// CancelAll cancels a list of tasks, up to 500 in a round trip. If one of the ids cannot be an id of this
// namespace, it returns [refusal.ErrInvalid] and cancels nothing. After another error some tasks can be
// cancelled and others not: call it again.
func (q *Queue) CancelAll(ctx context.Context, list []string, reason string) ([]Cancellation, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("cancel all", "", err)
	}
	return q.CancelAs(ctx, NewCall(), "", list, reason)
}

// CancelAs is CancelAll with the id of the call ([NewCall]). A repeat of the call returns the answers
// of the first call, whenever it is made. If owner is not empty, all tasks must be its children.
// Otherwise CancelAs returns [refusal.ErrNotOwner] and cancels none. As with CancelAll, a call that
// gets no reply from Redis can have cancelled some tasks: make the same call again.
func (q *Queue) CancelAs(ctx context.Context, call, owner string, ids []string, reason string) ([]Cancellation, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("cancel as", "", err)
	}
	span := q.tracer.Cancel(ctx, len(ids))
	cancellations, err := q.cancelEach(ctx, call, owner, ids, reason)
	q.traceCancel(ctx, span, ids, err)
	return cancellations, err
}

func (q *Queue) cancelEach(ctx context.Context, call, owner string, ids []string, reason string) ([]Cancellation, error) {
	if limit := min(q.config.MaxBytes, maxReason); len(reason) > limit {
		return nil, refusal.Failed("cancel", "", refusal.Invalid("reason", "has %d bytes, the limit is %d", len(reason), limit))
	}
	if err := names.CheckOwner(owner, ids); err != nil {
		return nil, refusal.Failed("cancel", "", err)
	}
	cancellations := make([]Cancellation, len(ids))
	order, ids := childrenFirst(ids)
	err := q.eachPartition(ids, func(p int, some []any, places []int) error {
		reply, err := q.engine.Call(ctx, p, "cancel", append([]any{call, reason, owner}, some...)...)
		answers, err := engine.Elements(reply, err)
		if err != nil {
			return err
		}
		for i, place := range places {
			if i >= len(answers) {
				return fmt.Errorf("%d answers for %d tasks", len(answers), len(places))
			}
			c := readCancellation(answers[i])
			cancellations[order[place]] = c
			if errors.Is(c.Err, refusal.ErrNotOwner) {
				return c.Err
			}
		}
		return nil
	})
	return cancellations, refusal.Failed("cancel", "", err)
}

// childrenFirst returns the places of ids and the ids in an order in which no owner is before its child, which would otherwise end
// with its owner in an earlier round trip. Within a round trip, cancel itself takes care of that, beside the priorities.
func childrenFirst(ids []string) (places []int, ordered []string) {
	for i := range ids {
		places = append(places, i)
	}
	if len(ids) > engine.MaxTasks {
		slices.SortStableFunc(places, func(a, b int) int { return strings.Count(ids[b], ".") - strings.Count(ids[a], ".") })
	}
	for _, place := range places {
		ordered = append(ordered, ids[place])
	}
	return places, ordered
}

func readCancellation(answer any) Cancellation {
	words, err := engine.Words(answer, nil)
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
	case word == "FOREIGN" && len(words) == 2:
		return Cancellation{Err: fmt.Errorf("%w: %s", refusal.ErrNotOwner, engine.Text(words[1]))}
	}
	return Cancellation{Err: engine.Unexpected("answer to cancel", words)}
}
