package queue

import (
	"context"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Resolution is the result of settling a promise. Done is true if this call settled it. Otherwise
// the promise had ended before, with this Status, and this Result or Error.
type Resolution struct {
	Done   bool
	Status Status
	Result []byte // if it had COMPLETED
	Error  string // if it had FAILED or was CANCELLED
}

// Resolve completes a promise, or a timer before its time. A promise that has ended is not changed,
// and the Resolution reports its end. A promise whose time is up ends by its timeout. Resolve
// returns [refusal.ErrNotFound], and [refusal.ErrInvalid] for a task that workers run.
func (q *Queue) Resolve(ctx context.Context, id string, result []byte) (Resolution, error) {
	if err := q.ready(ctx); err != nil {
		return Resolution{}, refusal.Failed("resolve", "", err)
	}
	if len(result) > q.config.MaxBytes {
		return Resolution{}, refusal.Failed("resolve", id, refusal.Invalid("result", "has %d bytes, the limit is %d: store it elsewhere and send a reference", len(result), q.config.MaxBytes))
	}
	r, err := q.settlePromise(ctx, "complete", id, result)
	return r, refusal.Failed("resolve", id, err)
}

// Reject fails a promise, with the reason as its error. Otherwise it works like Resolve.
func (q *Queue) Reject(ctx context.Context, id, reason string) (Resolution, error) {
	if err := q.ready(ctx); err != nil {
		return Resolution{}, refusal.Failed("reject", "", err)
	}
	if len(reason) > q.config.MaxBytes {
		return Resolution{}, refusal.Failed("reject", id, refusal.Invalid("reason", "has %d bytes, the limit is %d", len(reason), q.config.MaxBytes))
	}
	r, err := q.settlePromise(ctx, "fail", id, []byte(reason))
	return r, refusal.Failed("reject", id, err)
}

func (q *Queue) settlePromise(ctx context.Context, verb, id string, note []byte) (Resolution, error) {
	p, err := names.PartitionIn(id, q.Partitions())
	if err != nil {
		return Resolution{}, err
	}
	reply, err := q.engine.Call(ctx, p, "resolve", NewCall(), verb, id, note)
	answers, err := engine.List(reply, err, 1)
	if err != nil {
		return Resolution{}, err
	}
	words, err := engine.Words(answers[0], nil)
	if err != nil {
		return Resolution{}, err
	}
	switch word := engine.Text(words[0]); {
	case word == "OK" && len(words) == 2:
		return Resolution{Done: true, Status: Status(engine.Text(words[1]))}, nil
	case word == "ALREADY" && len(words) == 3:
		return settledBefore(words), nil
	case word == "MISSING":
		return Resolution{}, refusal.ErrNotFound
	}
	return Resolution{}, engine.Unexpected("answer to resolve", words)
}

// settledBefore reads the reply ALREADY, whose values are the status and the result or error.
func settledBefore(words []any) Resolution {
	r := Resolution{Status: Status(engine.Text(words[1]))}
	if r.Status == Completed {
		r.Result = []byte(engine.Text(words[2]))
	} else {
		r.Error = engine.Text(words[2])
	}
	return r
}
