package agentwait

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/jsonerr"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Agent is a task whose handler may wait for tasks of its own. It is the handler's
// context too, and belongs to the goroutine of the handler: no method may be called from
// another one.
type Agent struct {
	context.Context
	end context.CancelCauseFunc // ends it
	q   *queue.Queue
	job worker.Job

	memory    *queue.Memory
	children  int64                    // counter of the children without a name
	entry     int64                    // number of the newest entry of the journal that this run came to
	loaded    map[string]*queue.Record // children whose records came along, by the last parts of their ids
	known     map[string]*queue.Record // those that a wait has told of
	cancelled map[string]bool          // those that Cancel has cancelled
	named     map[string]bool          // children of this run, so that two do not get one name
	scheduled map[string]*child        // likewise, by id
	unfit     []*child                 // those that could not be scheduled

	inside string       // the step whose function runs
	unsent []queue.Task // children that were scheduled, and are made with the next wait
	since  []queue.Task // all that were scheduled since the last wait
	made   hash.Hash    // of those
	note   queue.Note   // what is to be remembered with the next call
	gone   error        // why the agent can do nothing more in this run
}

// Handle registers an agent: a handler that takes and gives JSON, or []byte, as those of
// worker.Handle do. It panics when the kind has a handler already, and after Run.
//
// The handler must be deterministic between its calls of this package, since it is called
// again from the beginning, or from its last Checkpoint, each time that it wakes: what it
// draws, asks or does elsewhere belongs into a Step, Now or Rand. An ErrSuspended that it
// gets it must return.
func Handle[In, Out any](w *worker.Worker, kind string, handle func(a *Agent, in In) (Out, error)) {
	if handle == nil || w == nil {
		w.HandleRaw(kind, nil) // panics
	}
	worker.Handle(w, kind, func(ctx context.Context, in In) (out Out, err error) {
		a := newAgent(ctx, w.Queue())
		defer a.end(nil)
		if err := a.recall(); err != nil {
			return out, a.verdict(err)
		}
		out, err = handle(a, in)
		return out, a.verdict(err)
	})
}

func newAgent(ctx context.Context, q *queue.Queue) *Agent {
	a := &Agent{q: q, job: worker.Info(ctx), memory: &queue.Memory{}, named: map[string]bool{}, scheduled: map[string]*child{},
		loaded: map[string]*queue.Record{}, known: map[string]*queue.Record{}, cancelled: map[string]bool{}}
	a.Context, a.end = context.WithCancelCause(ctx)
	a.made = newDigest()
	return a
}

// recall loads what the agent remembers, if it ran before.
func (a *Agent) recall() error {
	if !a.job.Journal {
		return nil
	}
	m, err := a.q.Attempts().Recall(a, a.job.ID)
	if err != nil {
		return a.trouble(err)
	}
	a.memory = m
	a.children, a.entry = m.Checkpoint.Children, m.Entries
	a.loaded = m.Children
	return nil
}

// ID is the agent's task.
func (a *Agent) ID() string { return a.given().job.ID }

// Info tells about the agent's task, as worker.Info does.
func (a *Agent) Info() worker.Job { return a.given().job }

// barred is why the agent can do nothing, nil if it can. Who uses it inside a step stops it:
// a replay does not run the step, so it could not come to the same.
func (a *Agent) barred() error {
	if a == nil {
		return errNobody
	}
	if a.gone == nil && a.inside != "" {
		a.gone = fmt.Errorf("%w, %q, which a replay does not run: draw, schedule and wait before the step, and use in it what came of that", errInside, a.inside)
	}
	return a.gone
}

var errInside = fmt.Errorf("%w: the agent is used inside the function of its step", refusal.ErrInvalid)

// suspended ends the run of an agent whose wait has its claim now. Its context ends too:
// what obeys that must not hold the worker while the agent runs elsewhere.
func (a *Agent) suspended() error {
	a.gone = ErrSuspended
	a.end(ErrSuspended)
	return ErrSuspended
}

// trouble keeps an error after which the agent can do nothing more in this run, and
// returns it.
func (a *Agent) trouble(err error) error {
	if a.Err() != nil && (infrastructure(err) || errors.Is(err, context.Cause(a))) {
		a.gone = errCutOff      // what the call did is unknown, so the record decides, and the verdict claims nothing
		return context.Cause(a) // Redis is not to blame
	}
	switch {
	case errors.Is(err, refusal.ErrDiverged), errors.Is(err, refusal.ErrNotHeld), errors.Is(err, refusal.ErrStopping),
		infrastructure(err), a.Err() != nil:
		a.gone = err
	}
	return err
}

// infrastructure tells whether an error says nothing of the agent: Redis is away or full, or does
// not let the worker do what it must.
func infrastructure(err error) bool {
	return errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown) || errors.Is(err, refusal.ErrFull) || refusal.Permanent(err)
}

// errCutOff ends a run whose context ended during a call.
var errCutOff = fmt.Errorf("%w: the call was cut off", refusal.ErrUnknown)

// tryAgain is how long an agent rests that could not speak to Redis.
const tryAgain = time.Second

// verdict is what becomes of the attempt. What stopped the agent goes before what its
// handler made of that.
func (a *Agent) verdict(err error) error {
	switch gone := a.gone; {
	case errors.Is(gone, ErrSuspended), errors.Is(gone, refusal.ErrNotHeld):
		return ErrSuspended
	case errors.Is(gone, ErrReplayDiverged), errors.Is(gone, errInside):
		return worker.Discard(gone)
	case gone != nil && infrastructure(gone):
		return worker.Release(tryAgain)
	case gone == nil && errors.Is(err, ErrSuspended):
		return worker.Discard(errNotSuspended) // the worker would take it for a suspension, and run it for ever
	case err != nil && !errors.Is(err, ErrSuspended):
		return err
	case gone != nil:
		return gone // cancelled, or shut down: what the handler made of that is no result
	case len(a.unsent) > 0 || len(a.untold()) > 0:
		return worker.Discard(a.unawaited())
	}
	if rest := a.leftOver(); rest != nil {
		return worker.Discard(rest)
	}
	return nil
}

var errNotSuspended = fmt.Errorf("%w: ErrSuspended was returned, and no wait had suspended the agent: return it when a wait returns it, and an error of your own otherwise", refusal.ErrInvalid)

// unawaited is the error of an agent that made children which nobody ever started, or
// that could not be started, and nobody was told.
func (a *Agent) unawaited() error {
	var names []string
	for _, t := range a.unsent {
		names = append(names, fmt.Sprintf("%s (%s)", t.ID, t.Kind))
	}
	for _, c := range a.untold() {
		names = append(names, fmt.Sprintf("%s (%s), which could not be scheduled: %v", c.id, c.kind, c.err))
	}
	if more := len(names) - 5; more > 0 {
		names = append(names[:5], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s: wait for them, or call Start", ErrUnawaited, strings.Join(names, " "))
}

// encode is JSON, or the bytes themselves.
func encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		return bytes.Clone(v), nil // the caller may go on using its own
	}
	text, err := json.Marshal(v)
	return text, jsonerr.Plain(err)
}

func decode[T any](b []byte) (v T, err error) {
	if raw, ok := any(&v).(*[]byte); ok {
		*raw = bytes.Clone(b)
		return v, nil
	}
	if len(b) == 0 {
		return v, nil
	}
	return v, jsonerr.Plain(json.Unmarshal(b, &v))
}
