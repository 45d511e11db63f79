package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/flow/internal/machine"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/internal/expr/value"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/worker"
)

// kindOf returns the kind of the runs of a flow.
func kindOf(id string) string { return "flow." + id }

// partOf returns the kind of a part of a run. A part is a DAG or a loop within the run, which runs
// as its own agent.
func partOf(id, template string) string { return kindOf(id) + "/" + template }

// flowOf returns the flow and the template of a kind. The template is "" for a whole run.
func flowOf(kind string) (id, template string) {
	id, template, _ = strings.Cut(strings.TrimPrefix(kind, "flow."), "/")
	return id, template
}

// The kinds of the tasks of package flow. They do not begin with "flow.", because they are no flows.
const (
	kindWait  = "flow/wait" // a promise
	kindSleep = "flow/sleep"
	kindHTTP  = "flow/http_request"
)

// input is the payload of a run.
type input struct {
	Parameters map[string]any `json:"parameters,omitempty"`
	Version    string         `json:"version,omitempty"` // defaults to the newest

	// Took is set for a part. It holds, for kinds with adaptive limits, the time in ms within which
	// 99.5 % of their tasks ended, as of the beginning of the run.
	Took map[string]int64 `json:"took,omitempty"`
}

// output is the result of a run.
type output = outputsOf[map[string]any]

// outputsOf is a result with named parameters.
type outputsOf[T any] struct {
	Outputs struct {
		Parameters T `json:"parameters"`
	} `json:"outputs"`
}

func newOutput(parameters map[string]any) *output {
	var out output
	if out.Outputs.Parameters = parameters; parameters == nil {
		out.Outputs.Parameters = map[string]any{}
	}
	return &out
}

// Each wake replays the waits since the last checkpoint, and a checkpoint writes the whole state. So
// a run with a larger state makes fewer checkpoints.
const (
	minWaits = 20 // between two checkpoints
	maxWaits = 100
	eachWait = 4 << 10 // bytes of state for a further wait between checkpoints

	reserve = 4 << 10 // bytes of a checkpoint or a result besides its value
)

// stepVersion is the step in which a run fixes its version. Read finds it in the journal.
const stepVersion = "version"

// run is the state of the agent's handler while it follows a definition.
type run struct {
	*agentwait.Agent
	all     *definitions
	flow    string // id of the definition
	part    string // the template, "" for a whole run
	version string
	plan    *plan.Definition
	machine *machine.Machine
	took    map[string]int64
	waits   int // since the last checkpoint
	size    int // of its state
}

// savedState is the state of a run in a checkpoint.
type savedState struct {
	Version string           `json:"version"`
	Took    map[string]int64 `json:"took,omitempty"`
	Machine json.RawMessage  `json:"machine"`
}

// follow continues a run until it waits or has ended.
func (d *definitions) follow(a *agentwait.Agent, payload []byte) (*output, error) {
	in, err := readInput(payload)
	if err != nil {
		return nil, worker.Discard(err)
	}
	r := &run{Agent: a, all: d}
	r.flow, r.part = flowOf(a.Info().Kind)
	steps, err := r.begin(in)
	for err == nil {
		if end, err := r.do(steps); err != nil || end != nil {
			return finish(end, err)
		}
		if r.waits++; r.waits > min(max(minWaits, r.size/eachWait), maxWaits) {
			if err := r.checkpoint(); err != nil {
				return nil, err
			}
		}
		steps, err = r.wait()
	}
	return nil, err
}

// begin restores the machine, or makes one.
func (r *run) begin(in input) (steps machine.Steps, err error) {
	var state savedState
	restored, err := r.Restore(&state)
	if err != nil {
		return steps, err
	}
	if restored {
		if r.plan, err = r.all.read(r, r.flow, state.Version); err != nil {
			return steps, err
		}
		r.version, r.took, r.size = state.Version, state.Took, len(state.Machine)
		r.waits = -1 // the checkpoint was made before a wait, which the replay repeats first
		if r.machine, err = machine.Restore(r.plan, in.Parameters, state.Machine); err == nil {
			r.configure()
		}
		return steps, err
	}
	// The version is fixed at the first claim, in a step, so that a replay gets the same version.
	if r.version, err = agentwait.Step(r.Agent, stepVersion, func(context.Context) (string, error) { return r.all.version(r, r.flow, in.Version) }); err != nil {
		return steps, err
	}
	if r.plan, err = r.all.read(r, r.flow, r.version); err != nil {
		return steps, err
	}
	if r.took = in.Took; r.part == "" {
		if err := r.plan.CheckInputs(in.Parameters); err != nil {
			return steps, worker.Discard(err)
		}
		if r.took, err = r.learn(); err != nil {
			return steps, err
		}
	}
	if r.machine, err = machine.New(r.plan, cmp.Or(r.part, r.plan.Entry), in.Parameters); err != nil {
		return steps, worker.Discard(err)
	}
	r.configure()
	if err := r.Collect(); err != nil {
		return steps, err
	}
	return r.machine.Begin(r.Now()), nil
}

// configure sets the hooks of the machine.
func (r *run) configure() {
	r.machine.Check(checker(r.all.q, r.ID()))
	r.machine.Took(r.took)
	r.machine.Until(r)
}

// learn reads the figures of the kinds with adaptive times.
func (r *run) learn() (map[string]int64, error) {
	if len(r.plan.AdaptiveKinds()) == 0 {
		return nil, nil
	}
	return agentwait.Step(r.Agent, "figures", func(ctx context.Context) (map[string]int64, error) { return r.all.readTimes(ctx, r.plan) })
}

// readInput reads the payload of a run. An empty payload is an input without parameters.
func readInput(payload []byte) (in input, err error) {
	if len(payload) == 0 {
		return in, nil
	}
	err = value.Decode(payload, &in, true)
	if err != nil {
		return in, fmt.Errorf(`the payload of a run must be {"parameters": {…}, "version": "…"}, each of them optional: %w`, jsonx.Plain(err))
	}
	return in, plan.CheckVersion(in.Version)
}

// do creates children. If the run ends thereby, it returns the end.
func (r *run) do(s machine.Steps) (*machine.End, error) {
	if err := r.machine.Err(); err != nil {
		return nil, err
	}
	for i := 0; i < len(s.Create) && s.End == nil; i++ {
		next, err := r.create(&s.Create[i])
		if err != nil {
			return nil, err
		}
		s.Add(next)
		if err := r.machine.Err(); err != nil {
			return nil, err
		}
	}
	return s.End, nil // the children end with the run
}

// wait waits for the next ends of children, and returns the steps that follow from them.
func (r *run) wait() (steps machine.Steps, err error) {
	from, until := r.machine.Limit()
	wait := agentwait.Wait{Reason: "Waiting for the next node to end"}
	if !until.IsZero() {
		wait.From, wait.Limit, wait.Proceed = from, until.Sub(from), r.machine.Proceeds()
	}
	ends, err := agentwait.NextEnds(r.With(wait))
	var late *agentwait.WaitTimeoutError
	if errors.As(err, &late) {
		return r.machine.Passed(), nil
	}
	if err != nil {
		return steps, err
	}
	for _, record := range ends {
		steps.Add(r.machine.Follow(record.ID[len(r.ID())+1:], endOf(record)))
	}
	return steps, nil
}

// checkpoint stores the state of the run. A state that is too large for that is not stored, up to
// maxWaits waits. Then the run fails, because each wake would replay all waits.
func (r *run) checkpoint() error {
	state, err := r.machine.State()
	if err != nil {
		return worker.Discard(err)
	}
	r.size = len(state)
	if limit := r.all.q.MaxBytes() - reserve; r.size > limit {
		if r.waits <= maxWaits {
			return nil // the run may end soon, or drop results that no node reads any more
		}
		return fmt.Errorf("the run keeps %d bytes of what its nodes have yielded, and the limit is %d: let them store what is large, and yield a name of it", r.size, limit)
	}
	r.waits = 0
	return r.Checkpoint(savedState{r.version, r.took, state})
}

// finish returns the result of a run, or the error with which it ends.
func finish(e *machine.End, err error) (*output, error) {
	if err != nil || e == nil {
		return nil, err
	}
	failed := errors.New(e.Msg)
	switch e.Phase {
	case machine.Succeeded:
		return newOutput(e.Outputs), nil
	case machine.Failed:
		return nil, worker.Discard(worker.Fail(e.Code, failed))
	case machine.Timeout:
		return nil, worker.Fail(codeTimeout, failed)
	}
	return nil, worker.Fail(e.Code, failed)
}

// codeTimeout is the exit code of a run that ends with the timeout of one of its nodes. A task is a
// timeout only by its own clock, so the run around it reads this code instead. No program exits with
// it.
const codeTimeout = -124
