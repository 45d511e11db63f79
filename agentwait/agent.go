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
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Agent is a task whose handler can wait for child tasks. It is the handler's context too. Only the
// goroutine of the handler may call its methods and pass it to functions of this package.
type Agent struct {
	context.Context
	end context.CancelCauseFunc // ends it
	q   *queue.Queue
	job worker.Job

	memory    *queue.Memory
	children  int64                    // counter of the children without a name
	entry     int64                    // number of the newest journal entry that this run has reached
	loaded    map[string]*queue.Record // records of children that the journal's reply had, by child name
	known     map[string]*queue.Record // records of children that a wait or Cancel has reported, by child name
	cancelled map[string]bool          // children that Cancel has cancelled, by name
	named     map[string]bool          // names of the children scheduled in this run: no two have the same
	scheduled map[string]*child        // children scheduled in this run, by id
	unfit     []*child                 // children that could not be scheduled

	inside string       // name of the step whose function runs
	unsent []queue.Task // scheduled children that are not created yet
	since  []queue.Task // all children scheduled since the last wait
	made   hash.Hash    // digest of since
	note   queue.Note   // journal entries and checkpoint to write with the next call
	gone   error        // why the agent can do nothing more in this run
	span   *spans.Span  // of this run; nil without tracing
}

// Handle registers an agent: a handler that takes and returns JSON, or []byte, as worker.Handle
// does. It panics if the kind has a handler already, if an argument is nil or empty, and after Run.
//
// Each time the agent wakes, the handler is called again, from the beginning or with the state of
// its last Checkpoint. So it must be deterministic between its calls of this package. Use Now and
// Rand for the time and random numbers, and Step for any other effect or read. If a call returns
// ErrSuspended, the handler must return that error.
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
		loaded: map[string]*queue.Record{}, known: map[string]*queue.Record{}, cancelled: map[string]bool{}, span: spans.ProcessOf(ctx)}
	a.span.Agent(a.job.Kind)
	a.Context, a.end = context.WithCancelCause(ctx)
	a.made = newDigest()
	return a
}

// recall loads the journal of the agent if it has run before.
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

// ID returns the id of the agent's task.
func (a *Agent) ID() string { return a.given().job.ID }

// Info describes the agent's task, as worker.Info does.
func (a *Agent) Info() worker.Job { return a.given().job }

// EnsureKind stores the defaults of a kind if it has none, as [queue.Queue.EnsureKind] does. It is for packages that
// schedule children of kinds with defaults. If it returns an error, the agent can do nothing more in this run.
func (a *Agent) EnsureKind(kind string, d queue.Defaults) error {
	if err := a.barred(); err != nil {
		return err
	}
	err := a.q.EnsureKind(a, kind, d)
	if err != nil {
		err = a.trouble(err)
		if a.gone == nil {
			a.gone = err
		}
	}
	return err
}

// barred returns why the agent can do nothing more in this run, or nil. If the agent is used inside
// the function of its step, barred ends the agent: a replay does not run that function, so it
// could not make the same calls.
func (a *Agent) barred() error {
	if a == nil {
		return errNobody
	}
	if a.gone == nil && a.inside != "" {
		a.gone = fmt.Errorf("%w, %q, which a replay does not run: make these calls before the step and pass their results in", errInside, a.inside)
	}
	return a.gone
}

var errInside = fmt.Errorf("%w: the agent is used inside the function of its step", refusal.ErrInvalid)

// suspended ends the run of an agent that waits and no longer has its claim. It ends the context too:
// functions that use the context must not keep the worker busy while the agent runs elsewhere.
func (a *Agent) suspended() error {
	a.gone = ErrSuspended
	a.end(ErrSuspended)
	return ErrSuspended
}

// trouble returns err, or the cause of the agent's context if that has ended. If the agent can do
// nothing more in this run, trouble records that.
func (a *Agent) trouble(err error) error {
	if a.Err() != nil && (infrastructure(err) || errors.Is(err, context.Cause(a))) {
		a.gone = errCutOff      // the effect of the call is unknown, so the task is given back and the journal decides
		return context.Cause(a) // the reason is the end of the context, not Redis
	}
	switch {
	case errors.Is(err, refusal.ErrDiverged), errors.Is(err, refusal.ErrNotHeld), errors.Is(err, refusal.ErrStopping),
		infrastructure(err), a.Err() != nil:
		a.gone = err
	}
	return err
}

// infrastructure reports whether an error is not the agent's fault: Redis is away or full, or the
// worker lacks a right.
func infrastructure(err error) bool {
	return errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown) || errors.Is(err, refusal.ErrFull) || refusal.Permanent(err)
}

// errCutOff ends a run whose context ended during a call.
var errCutOff = fmt.Errorf("%w: the context ended during the call", refusal.ErrUnknown)

// tryAgain is how long an agent is delayed after a call to Redis has failed.
const tryAgain = time.Second

// verdict returns the error that the worker gets for this attempt. If a call has ended the run, that
// reason has precedence over the error of the handler.
func (a *Agent) verdict(err error) error {
	switch gone := a.gone; {
	case errors.Is(gone, ErrSuspended), errors.Is(gone, refusal.ErrNotHeld):
		return ErrSuspended
	case errors.Is(gone, ErrReplayDiverged), errors.Is(gone, errInside):
		return worker.Discard(gone)
	case gone != nil && infrastructure(gone):
		return worker.Release(tryAgain)
	case gone == nil && errors.Is(err, ErrSuspended):
		return worker.Discard(errNotSuspended) // otherwise the agent would run again and again
	case err != nil && !errors.Is(err, ErrSuspended):
		return err
	case gone != nil:
		return gone // cancelled or shut down: the value that the handler returned is not a result
	}
	if err := a.abandoned(); err != nil {
		return worker.Discard(err)
	}
	if err := a.leftOver(); err != nil {
		return worker.Discard(err)
	}
	return nil
}

var errNotSuspended = fmt.Errorf("%w: ErrSuspended was returned, but no wait has suspended the agent: return ErrSuspended only when a wait returns it, and otherwise an error of your own", refusal.ErrInvalid)

// abandoned returns the error of an agent that has returned while children were not created yet, or could
// not be scheduled and no call has returned that.
func (a *Agent) abandoned() error {
	var unfit, unsent []string
	for _, c := range a.unreported() {
		unfit = append(unfit, fmt.Sprintf("%s (%s): %v", c.id, c.kind, c.err))
	}
	for _, t := range a.unsent {
		unsent = append(unsent, fmt.Sprintf("%s (%s)", t.ID, t.Kind))
	}
	var all []error
	if len(unfit) > 0 {
		all = append(all, fmt.Errorf("children could not be scheduled: %s", few(unfit)))
	}
	if len(unsent) > 0 {
		all = append(all, fmt.Errorf("%w: %s: wait for them, or call Start", ErrUnawaited, few(unsent)))
	}
	return errors.Join(all...)
}

// few returns the first of a list of texts, and how many more there are.
func few(texts []string) string {
	if more := len(texts) - 5; more > 0 {
		texts = append(texts[:5:5], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// encode returns v as JSON. It returns a copy of a []byte, and nil for nil.
func encode(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		return bytes.Clone(v), nil // the caller can change its own bytes
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
