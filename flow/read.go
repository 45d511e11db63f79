package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/expr/value"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Read returns the present state of a run, or of a part of one. It changes nothing, and nothing is
// stored for it: Read replays the definition with the records of the run's tasks, which it reads 250
// in a call. So a run can change while it is read. With deep, it also reads the parts of the run and
// the runs that it has called. If the run has more than 100,000 nodes in sum, or computing them
// takes more than 10 s, Read returns [refusal.ErrInvalid].
//
// If there is no such task, Read returns [refusal.ErrNotFound]. If the task is not a run, it returns
// [refusal.ErrInvalid].
//
// Read takes the version from a live run, and from the children of an ended run. A run that was
// enqueued without a version, and has ended without children, gets the version whose definition
// explains its result. If several do, Version is "".
func Read(ctx context.Context, q *queue.Queue, run string, deep bool) (*Run, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("read a run", "", err)
	}
	v := &viewer{q, newDefinitions(q), deep, newBudget()}
	r, err := v.readRun(ctx, run)
	return r, refusal.Failed("read a run", run, err)
}

// viewer reads runs.
type viewer struct {
	q    *queue.Queue
	d    *definitions
	deep bool

	budget *budget
}

func (v *viewer) readRun(ctx context.Context, id string) (*Run, error) {
	p, err := names.PartitionIn(id, v.q.Partitions())
	if err != nil {
		return nil, err
	}
	records, now, err := v.q.GetSome(ctx, p, []string{id})
	switch {
	case err != nil:
		return nil, err
	case records[0] == nil:
		return nil, refusal.ErrNotFound
	case !strings.HasPrefix(records[0].Kind, kindOf("")):
		return nil, refusal.Invalid("run", "must be a run of a flow, whose kind begins with %s: this is a task of the kind %s", kindOf(""), records[0].Kind)
	}
	record := records[0]
	r := &Run{ID: id, Phase: Phase(record.Phase()), Record: record, At: now}
	if r.Phase.over() {
		r.Phase = Phase(endOf(record).Phase)
	}
	r.Flow, r.Template = flowOf(record.Kind)
	seen, err := v.replay(ctx, r)
	if err != nil {
		return nil, err
	}
	v.budget.nodes += len(seen.order)
	r.template = seen.template
	r.Nodes = seen.nodes(r)
	if v.deep {
		err = v.readParts(ctx, r)
	}
	return r, err
}

// readParts reads the runs of the nodes that are runs themselves.
func (v *viewer) readParts(ctx context.Context, r *Run) error {
	for _, n := range r.Nodes {
		if n.Task == "" || !strings.HasPrefix(n.Kind, kindOf("")) {
			continue
		}
		part, err := v.readRun(ctx, n.Task)
		if err != nil && !errors.Is(err, refusal.ErrNotFound) {
			return err
		}
		n.Part = part
	}
	return nil
}

// replay replays a run with its version, and sets the version.
func (v *viewer) replay(ctx context.Context, r *Run) (*replay, error) {
	var in input
	_ = value.Decode(r.Record.Payload, &in, false) // a run whose payload cannot be read has failed, and has no nodes
	c := &children{v.q, r.ID, map[string]*queue.Record{}, map[string]int{}}
	started := true
	try := func(version string) (*replay, error) {
		d, err := v.d.read(ctx, r.Flow, version)
		if err != nil {
			return nil, err
		}
		name := r.Template
		if name == "" {
			name = d.Entry
		}
		if d.Templates[name] == nil {
			return nil, refusal.Invalid("template", "%s is not in version %s of %s", name, version, r.Flow)
		}
		p := &replay{run: r.Record, now: r.At, inputs: in.Parameters, took: in.Took, plan: d, template: d.Templates[name], children: c, budget: v.budget}
		if !started {
			return p, nil
		}
		return p, p.explain(ctx, created(r.Record))
	}
	taken, err := v.taken(ctx, r.Record)
	switch {
	case err != nil:
		return nil, err
	case taken == "" && !r.Record.Status.Ended() || r.Record.StartedAt.IsZero():
		started = false
	case taken == "" && in.Version == "":
		return v.guess(ctx, r, c, try)
	}
	r.Version = cmp.Or(in.Version, taken)
	version := r.Version
	if version == "" { // the run would take the newest version
		if version, err = v.d.version(ctx, r.Flow, ""); err != nil {
			return nil, err
		}
	}
	return try(version)
}

// taken returns the version that a live run has taken, "" if it has not begun. The journal of an
// ended run is removed.
func (v *viewer) taken(ctx context.Context, record *queue.Record) (version string, err error) {
	if record.Status.Ended() || record.StartedAt.IsZero() {
		return "", nil
	}
	memory, err := claim.Of(v.q).Journal(ctx, record.ID)
	if err != nil {
		return "", err
	}
	if memory.State != nil {
		var state savedState
		err = json.Unmarshal(memory.State, &state)
		return state.Version, err
	}
	for _, entry := range memory.Journal {
		if text, ok := strings.CutPrefix(entry, "step "+stepVersion+"\n"); ok {
			err = json.Unmarshal([]byte(text), &version)
		}
	}
	return version, err
}

// maxGuesses is the number of versions with which a run is compared, the newest first.
const maxGuesses = 20

// guess finds the version of a run that has ended. The records of its children name it. Without
// children, it is the version that explains the result.
func (v *viewer) guess(ctx context.Context, r *Run, c *children, try func(string) (*replay, error)) (*replay, error) {
	versions, err := versionsOf(ctx, v.q, r.Flow)
	if err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, refusal.ErrNotFound
	}
	slices.Reverse(versions)
	var newest, fitting *replay
	for _, version := range versions[:min(len(versions), maxGuesses)] {
		attempt, err := try(version)
		if err != nil {
			return nil, err
		}
		if named := c.version(); named != "" {
			r.Version = named
			return try(named)
		}
		if newest == nil {
			newest = attempt
		}
		switch {
		case len(versions) > 1 && !attempt.fits(created(r.Record)):
		case fitting == nil:
			fitting, r.Version = attempt, version
		default:
			r.Version = "" // several versions explain the result
		}
	}
	if fitting == nil {
		return newest, nil
	}
	return fitting, nil
}
