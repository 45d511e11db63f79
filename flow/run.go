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
	"github.com/curfew-dev/curfew/internal/jsonerr"
	"github.com/curfew-dev/curfew/worker"
)

// kindOf returns the kind of the runs of a flow.
func kindOf(id string) string { return "flow." + id }

// partOf returns the kind of a part of a run: of a DAG or a loop within it, which is a run of its own.
func partOf(id, template string) string { return kindOf(id) + "/" + template }

// flowOf returns the flow and the template of a kind. The template is "" for a whole run.
func flowOf(kind string) (id, template string) {
	id, template, _ = strings.Cut(strings.TrimPrefix(kind, "flow."), "/")
	return id, template
}

// The kinds of the tasks that come with flows. They are no flows: those begin with "flow.".
const (
	kindWait  = "flow/wait" // a promise
	kindSleep = "flow/sleep"
	kindHTTP  = "flow/http_request"
)

// input is the payload of a run.
type input struct {
	Parameters map[string]any `json:"parameters,omitempty"`
	Version    string         `json:"version,omitempty"` // the newest if it is left out

	// Took is of a part: what 99.5 % of the tasks of kinds with adaptive times took at most, in ms, when the run began.
	Took map[string]int64 `json:"took,omitempty"`
}

// output is the result of a run.
type output = outputsOf[map[string]any]

// outputsOf is a result that names its parameters.
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

// Between two checkpoints each wake replays the waits since the first of them, and a checkpoint writes the whole state. So a run with a
// larger state makes fewer of them.
const (
	least    = 20 // waits between two checkpoints
	most     = 100
	eachWait = 4 << 10 // bytes of state

	reserve = 4 << 10 // bytes of what a checkpoint or a result has beside its value
)

// stepVersion is the step in which a run fixes its version. Read finds it in the journal.
const stepVersion = "version"

// run is one run of the handler of an agent that follows a definition.
type run struct {
	*agentwait.Agent
	all     *definitions
	of      string // id of the definition
	part    string // the template, "" for a whole run
	version string
	plan    *plan.Definition
	machine *machine.Machine
	took    map[string]int64
	waits   int // since the last checkpoint
	size    int // of its state
}

// remembered is the state of a checkpoint.
type remembered struct {
	Version string           `json:"version"`
	Took    map[string]int64 `json:"took,omitempty"`
	Machine json.RawMessage  `json:"machine"`
}

// follow runs a run until it waits or has ended.
func (d *definitions) follow(a *agentwait.Agent, payload []byte) (*output, error) {
	in, err := readInput(payload)
	if err != nil {
		return nil, worker.Discard(err)
	}
	r := &run{Agent: a, all: d}
	r.of, r.part = flowOf(a.Info().Kind)
	steps, err := r.begin(in)
	for err == nil {
		if end, err := r.do(steps); err != nil || end != nil {
			return finish(end, err)
		}
		if r.waits++; r.waits > min(max(least, r.size/eachWait), most) {
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
	var was remembered
	again, err := r.Restore(&was)
	if err != nil {
		return steps, err
	}
	if again {
		if r.plan, err = r.all.read(r, r.of, was.Version); err != nil {
			return steps, err
		}
		r.version, r.took, r.size = was.Version, was.Took, len(was.Machine)
		r.waits = -1 // the first wait is the one before which the checkpoint was made
		if r.machine, err = machine.Restore(r.plan, in.Parameters, was.Machine); err == nil {
			r.prepare()
		}
		return steps, err
	}
	// The version is fixed at the first claim: a replay gets the same.
	if r.version, err = agentwait.Step(r.Agent, stepVersion, func(context.Context) (string, error) { return r.all.version(r, r.of, in.Version) }); err != nil {
		return steps, err
	}
	if r.plan, err = r.all.read(r, r.of, r.version); err != nil {
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
	r.prepare()
	if err := r.Collect(); err != nil {
		return steps, err
	}
	return r.machine.Begin(r.Now()), nil
}

// prepare gives the machine what it does not know itself.
func (r *run) prepare() {
	r.machine.Check(checker(r.all.q, r.ID()))
	r.machine.Took(r.took)
	r.machine.Until(r)
}

// learn reads the figures of the kinds with adaptive times.
func (r *run) learn() (map[string]int64, error) {
	if len(r.plan.AdaptiveKinds()) == 0 {
		return nil, nil
	}
	return agentwait.Step(r.Agent, "figures", func(ctx context.Context) (map[string]int64, error) { return r.all.learn(ctx, r.plan) })
}

// readInput reads the payload of a run. None is an input without parameters.
func readInput(payload []byte) (in input, err error) {
	if len(payload) == 0 {
		return in, nil
	}
	err = value.Decode(payload, &in, true)
	if err != nil {
		return in, fmt.Errorf(`the payload of a run must be {"parameters": {…}, "version": "…"}, each of them optional: %w`, jsonerr.Plain(err))
	}
	return in, plan.CheckVersion(in.Version)
}

// do creates children. It returns the end of the run if that follows.
func (r *run) do(s machine.Steps) (*machine.End, error) {
	if err := r.machine.Err(); err != nil {
		return nil, err
	}
	for i := 0; i < len(s.Create) && s.End == nil; i++ {
		more, err := r.create(&s.Create[i])
		if err != nil {
			return nil, err
		}
		s.Add(more)
		if err := r.machine.Err(); err != nil {
			return nil, err
		}
	}
	return s.End, nil // the children end with the run
}

// wait waits for the next ends, and returns what follows from them.
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

// checkpoint stores what the run remembers. A run that keeps too much for that can make the most waits, and then it ends: each wake
// would replay all of them.
func (r *run) checkpoint() error {
	state, err := r.machine.State()
	if err != nil {
		return worker.Discard(err)
	}
	r.size = len(state)
	if limit := r.all.q.MaxBytes() - reserve; r.size > limit {
		if r.waits <= most {
			return nil // it may end soon, or drop what no node reads any more
		}
		return fmt.Errorf("the run keeps %d bytes of what its nodes have yielded, and the limit is %d: let them store what is large, and yield a name of it", r.size, limit)
	}
	r.waits = 0
	return r.Checkpoint(remembered{r.version, r.took, state})
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

// codeTimeout is the code of a run that ends as what it wraps, and that was out of time. Only the clock of a task itself makes it a
// timeout, so the run around it reads this code. No program ends with it.
const codeTimeout = -124
