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

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Agent is a task whose handler can wait for child tasks. It is also the handler's context. It is
// not safe for concurrent use: only the goroutine of the handler may call its methods and pass it to
// functions of this package.
type Agent struct {
	context.Context
	end context.CancelCauseFunc // of the Context
	q   *queue.Queue
	job worker.Job

	memory    *queue.Memory
	children  int64                    // counter of the children without a name
	entry     int64                    // number of the newest journal entry that this run has reached
	recalled  map[string]*queue.Record // records of children that came with the journal, by child name
	records   map[string]*queue.Record // records of children that a wait or Cancel of this run has reported, by child name
	cancelled map[string]bool          // children that Cancel has cancelled, by name
	names     map[string]bool          // names of the children scheduled in this run, which must differ
	scheduled map[string]*child        // children scheduled in this run, by id
	invalid   []*child                 // children that could not be scheduled

	stepName string       // name of the step whose function runs
	unsent   []queue.Task // scheduled children that are not created yet
	added    []queue.Task // children of earlier waits that the earlier run did not schedule, not created yet
	recent   []queue.Task // all children scheduled since the last wait
	digest   hash.Hash    // digest of recent, which the next wait includes
	note     claim.Note   // journal entries and a checkpoint, which the next call writes
	stopErr  error        // ended this run: further calls return it
	span     *spans.Span  // of this run; nil without tracing

	rehearsal *rehearsal // of a recording; nil if the agent runs
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
	w.MarkAgent(kind)
}

func newAgent(ctx context.Context, q *queue.Queue) *Agent {
	a := &Agent{q: q, job: worker.Info(ctx), memory: &queue.Memory{}, names: map[string]bool{}, scheduled: map[string]*child{},
		recalled: map[string]*queue.Record{}, records: map[string]*queue.Record{}, cancelled: map[string]bool{}, span: spans.ProcessOf(ctx)}
	a.span.Agent(a.job.Kind)
	a.Context, a.end = context.WithCancelCause(ctx)
	a.digest = newDigest()
	a.rehearsal, _ = ctx.Value(rehearsalKey{}).(*rehearsal)
	return a
}

// recall loads the journal of the agent if it has run before.
func (a *Agent) recall() error {
	if !a.job.Journal {
		return nil
	}
	var m *queue.Memory
	if a.rehearsal != nil {
		m = a.rehearsal.memory()
	} else if read, err := claim.Of(a.q).Recall(a, a.job.ID); err != nil {
		return a.callError(err)
	} else {
		m = read
	}
	a.memory = m
	a.children, a.entry = m.Checkpoint.Children, m.Entries
	a.recalled = m.Children
	return nil
}

// ID returns the id of the agent's task.
func (a *Agent) ID() string { return a.mustAgent().job.ID }

// Info describes the agent's task, as worker.Info does.
func (a *Agent) Info() worker.Job { return a.mustAgent().job }

// EnsureKind stores the defaults of a kind if it has none, as [queue.Queue.EnsureKind] does. It is
// for packages that schedule children of kinds with defaults. An error ends this run of the agent.
func (a *Agent) EnsureKind(kind string, d queue.Defaults) error {
	if err := a.stopped(); err != nil {
		return err
	}
	if a.rehearsal != nil {
		return nil
	}
	err := a.q.EnsureKind(a, kind, d)
	if err != nil {
		err = a.callError(err)
		if a.stopErr == nil {
			a.stopErr = err
		}
	}
	return err
}

// stopped returns the error that ended this run, or nil. It also ends the run if the agent is used
// inside the function of its step: a replay does not run that function, so it could not make the
// same calls.
func (a *Agent) stopped() error {
	if a == nil {
		return errNilAgent
	}
	if a.stopErr == nil && a.rehearsal != nil && a.entry >= a.rehearsal.last {
		return a.suspended() // further calls would have effects
	}
	if a.stopErr == nil && a.stepName != "" {
		a.stopErr = fmt.Errorf("%w, %q, which a replay does not run: make these calls before the step and pass their results in", errInside, a.stepName)
	}
	return a.stopErr
}

var errInside = fmt.Errorf("%w: the agent is used inside the function of its step", refusal.ErrInvalid)

// suspended ends the run of an agent that waits and no longer has its claim. It also ends the
// context, because a function that uses the context must not keep the worker busy while the agent
// runs elsewhere.
func (a *Agent) suspended() error {
	a.stopErr = ErrSuspended
	a.end(ErrSuspended)
	return ErrSuspended
}

// callError returns the error of a call to Redis, or the cause of the agent's context if the context
// has ended. If the agent cannot continue after the error, callError ends this run.
func (a *Agent) callError(err error) error {
	if a.Err() != nil && (infrastructure(err) || errors.Is(err, context.Cause(a))) {
		a.stopErr = errCutOff   // the effect of the call is unknown: give the task back, and the next run reads the journal
		return context.Cause(a) // Redis answered or not: the caller should see why the context ended
	}
	switch {
	case errors.Is(err, refusal.ErrDiverged), errors.Is(err, refusal.ErrNotHeld), errors.Is(err, refusal.ErrStopping),
		infrastructure(err), a.Err() != nil:
		a.stopErr = err
	}
	return err
}

// infrastructure reports whether an error is not the agent's fault: Redis is unreachable or full, or
// the worker lacks a right.
func infrastructure(err error) bool {
	return errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown) || errors.Is(err, refusal.ErrFull) || refusal.Permanent(err)
}

// errCutOff ends a run whose context ended during a call.
var errCutOff = fmt.Errorf("%w: the context ended during the call", refusal.ErrUnknown)

// releaseDelay delays the next run of an agent after a call to Redis has failed.
const releaseDelay = time.Second

// verdict returns the error for the worker. If a call has ended the run, its error has precedence,
// whatever the handler returned.
func (a *Agent) verdict(err error) error {
	err = a.judge(err)
	if a.rehearsal != nil {
		a.rehearsal.end(a, err)
	}
	return err
}

func (a *Agent) judge(err error) error {
	switch stopErr := a.stopErr; {
	case errors.Is(stopErr, ErrSuspended), errors.Is(stopErr, refusal.ErrNotHeld):
		return ErrSuspended
	case errors.Is(stopErr, ErrReplayDiverged):
		return worker.Diverged(stopErr)
	case errors.Is(stopErr, errInside):
		return worker.Discard(stopErr)
	case stopErr != nil && infrastructure(stopErr):
		return worker.Release(releaseDelay)
	case stopErr == nil && errors.Is(err, ErrReplayDiverged): // of Restore
		return worker.Diverged(err)
	case stopErr == nil && errors.Is(err, ErrSuspended):
		return worker.Discard(errNotSuspended) // otherwise the agent would run again and again
	case err != nil && !errors.Is(err, ErrSuspended):
		return err
	case stopErr != nil:
		return stopErr // cancelled or shut down: the value that the handler returned is not a result
	}
	if err := a.checkReplayed(); err != nil {
		return worker.Diverged(err)
	}
	if err := a.startAdded(); err != nil {
		return err
	}
	if err := a.checkAwaited(); err != nil {
		return worker.Discard(err)
	}
	return nil
}

var errNotSuspended = fmt.Errorf("%w: ErrSuspended was returned, but no wait has suspended the agent: return ErrSuspended only when a wait returns it, and otherwise an error of your own", refusal.ErrInvalid)

// checkAwaited returns an error if the handler returned too early: a child was not created yet, or
// could not be scheduled and no call has reported that.
func (a *Agent) checkAwaited() error {
	var invalid, unsent []string
	for _, c := range a.unreported() {
		invalid = append(invalid, fmt.Sprintf("%s (%s): %v", c.id, c.kind, c.err))
	}
	for _, t := range a.unsent {
		unsent = append(unsent, fmt.Sprintf("%s (%s)", t.ID, t.Kind))
	}
	var errs []error
	if len(invalid) > 0 {
		errs = append(errs, fmt.Errorf("children could not be scheduled: %s", few(invalid)))
	}
	if len(unsent) > 0 {
		errs = append(errs, fmt.Errorf("%w: %s: wait for them, or call Start", ErrUnawaited, few(unsent)))
	}
	return errors.Join(errs...)
}

// few joins the first five texts, and adds the number of the rest.
func few(texts []string) string {
	if rest := len(texts) - 5; rest > 0 {
		texts = append(texts[:5:5], fmt.Sprintf("and %d more", rest))
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
	return text, jsonx.Plain(err)
}

func decode[T any](b []byte) (v T, err error) {
	if raw, ok := any(&v).(*[]byte); ok {
		*raw = bytes.Clone(b)
		return v, nil
	}
	if len(b) == 0 {
		return v, nil
	}
	return v, jsonx.Plain(json.Unmarshal(b, &v))
}
