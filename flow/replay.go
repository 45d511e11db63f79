package flow

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/machine"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/queue"
)

// replay follows a run again, from its beginning, with the records of its children. This works
// without stored state, because a machine returns the same steps for the same ends.
type replay struct {
	run      *queue.Record
	now      time.Time
	inputs   map[string]any
	took     map[string]int64 // of a part
	plan     *plan.Definition
	template *plan.Template
	children *children

	machine *machine.Machine
	made    map[string]bool // names of the children that the run has created or is about to create
	order   []*sight        // the calls, in the order in which they began
	sights  map[string]*sight
	end     *machine.End
	context context.Context // of Read
	budget  *budget

	first   map[string]bool // names of children whose ends go first among ends of the same instant
	tied    []string        // names of children whose ends followed another end of the same instant
	waiting []*queue.Record // ended children that the machine has not seen yet, by the instant of their end
}

// sight is a call in a replay.
type sight struct {
	node, key string
	children  []string     // names, one for each attempt
	end       *machine.End // nil while it is under way
}

// maxOrders bounds the orders of ends that are tried.
const maxOrders = 20

// explain replays the run. The order of two ends in the same ms is not stored. If the first order
// does not lead to all children that the run has created, explain tries others, and keeps the order
// that leads to most of them.
func (r *replay) explain(ctx context.Context, created int) error {
	r.first = map[string]bool{}
	if err := r.follow(ctx); err != nil {
		return err
	}
	best, last := r.countFound(), true
	tied := r.tied
	for tries := 0; best < created && len(tied) > 0 && tries < maxOrders; tries++ {
		name := tied[0]
		tied = tied[1:]
		r.first[name] = true
		if err := r.follow(ctx); err != nil {
			return err
		}
		if n := r.countFound(); n > best {
			best, last, tied = n, true, r.tied
			continue
		}
		delete(r.first, name)
		last = false
	}
	if last {
		return nil
	}
	return r.follow(ctx)
}

// follow replays the run. It passes over children that ended because the run did, since the machine
// never saw them.
func (r *replay) follow(ctx context.Context) (err error) {
	r.context = ctx
	r.budget.begin()
	defer func() {
		r.budget.stop()
		if p := recover(); p != nil {
			s, ok := p.(stopped)
			if !ok {
				panic(p)
			}
			err = s.error
		}
	}()
	at, err := r.startTime(ctx)
	if err != nil {
		return err
	}
	steps, err := r.begin(at)
	for err == nil && r.end == nil {
		if err = r.take(ctx, steps); err != nil || r.end != nil {
			break
		}
		if len(r.waiting) > 0 {
			next := r.waiting[0]
			r.waiting = r.waiting[1:]
			for _, child := range r.waiting {
				if len(r.tied) == maxOrders || !child.CompletedAt.Equal(next.CompletedAt) {
					break
				}
				r.tied = append(r.tied, r.nameOf(child))
			}
			steps = r.machine.Follow(r.nameOf(next), endOf(next))
		} else if steps = r.machine.PassedBefore(r.until()); len(steps.Create) == 0 && steps.End == nil {
			break
		}
	}
	return err
}

// begin makes the machine, and begins at an instant.
func (r *replay) begin(at time.Time) (steps machine.Steps, err error) {
	r.made, r.sights, r.order, r.waiting, r.tied, r.end = map[string]bool{}, map[string]*sight{}, nil, nil, nil, nil
	if r.machine, err = machine.New(r.plan, r.template.Name, r.inputs); err != nil {
		return steps, err
	}
	r.machine.Watch(r.saw)
	r.machine.Check(checker(r.children.q, r.run.ID))
	r.machine.Took(r.took)
	return r.machine.Begin(at), nil
}

// startTime returns the start of the run. The first claim is not stored, so it is the creation of
// the first child, which follows at once.
func (r *replay) startTime(ctx context.Context) (time.Time, error) {
	at := r.run.StartedAt
	if at.IsZero() {
		at = r.run.CreatedAt
	}
	steps, err := r.begin(at)
	if err != nil {
		return at, err
	}
	first := namesOf(steps)
	if r.template.DAG != nil {
		for _, c := range r.template.DAG.Nodes { // all nodes, so that one call reads their records
			first = append(first, c.Name)
		}
	}
	if err := r.learn(ctx, first); err != nil {
		return at, err
	}
	var children []time.Time
	for _, name := range namesOf(steps) {
		if child := r.children.records[name]; child != nil {
			children = append(children, child.CreatedAt)
		}
	}
	if len(children) > 0 { // the earliest, because the clock of Redis can have been set back and the run claimed again
		at = slices.MinFunc(children, time.Time.Compare)
	}
	return at, nil
}

// learn reads children, whose time the budget does not count.
func (r *replay) learn(ctx context.Context, names []string) error {
	r.budget.stop()
	defer r.budget.begin()
	return r.children.load(ctx, names)
}

// until returns the instant before which the limits of waits have passed.
func (r *replay) until() time.Time {
	if r.run.Status.Ended() {
		return r.run.CompletedAt.Add(time.Millisecond)
	}
	return r.now
}

func namesOf(s machine.Steps) (names []string) {
	for i := range s.Create {
		names = append(names, s.Create[i].Name)
	}
	return names
}

// take reads the children of some steps.
func (r *replay) take(ctx context.Context, s machine.Steps) error {
	r.end = s.End
	if s.End != nil {
		return nil // an ended run creates no more children
	}
	if err := r.learn(ctx, namesOf(s)); err != nil {
		return err
	}
	for _, name := range namesOf(s) {
		r.made[name] = true
		child := r.children.records[name]
		if child == nil || !child.Status.Ended() || r.endedWithRun(child) {
			continue
		}
		i, _ := slices.BinarySearchFunc(r.waiting, child, func(a, b *queue.Record) int {
			if a.CompletedAt.After(b.CompletedAt) || a.CompletedAt.Equal(b.CompletedAt) && !r.first[r.nameOf(a)] && r.first[name] {
				return 1
			}
			return -1 // after ends of the same instant
		})
		r.waiting = slices.Insert(r.waiting, i, child)
	}
	return nil
}

// nameOf returns the name of a child of the run.
func (r *replay) nameOf(child *queue.Record) string { return child.ID[len(r.run.ID)+1:] }

// endedWithRun reports whether a child ended because the run did, or a run around it, or after that.
func (r *replay) endedWithRun(child *queue.Record) bool {
	byOwner := child.Reason == queue.ReasonOwnerEnded || child.TimeoutType == queue.TimeoutWorkflow
	end := r.run.CompletedAt
	if !r.run.Status.Ended() {
		end = r.run.Until
	}
	return !end.IsZero() && (child.CompletedAt.After(end) && r.run.Status.Ended() || byOwner && !child.CompletedAt.Before(end))
}

func (r *replay) saw(node, key, child string, e *machine.End) {
	if r.context.Err() != nil {
		panic(stopped{r.context.Err()})
	}
	s := r.sights[key]
	if s == nil {
		s = &sight{node: node, key: key}
		r.sights[key] = s
		r.order = append(r.order, s)
	}
	if err := r.budget.check(r.run.ID, len(r.order)); err != nil {
		panic(stopped{err})
	}
	if e != nil {
		s.end = e
	} else if child != "" {
		s.children = append(s.children, child)
	}
}

// stopped ends a replay within a step of the machine. It is a panic, because a step with many nodes
// that take no time can be long, and nothing else ends it.
type stopped struct{ error }

// countFound returns the number of stored children that the replay has reached.
func (r *replay) countFound() (n int) {
	for name := range r.made {
		if r.children.records[name] != nil {
			n++
		}
	}
	return n
}

// fits reports whether the definition explains an ended run: all its children, and its result.
func (r *replay) fits(created int) bool {
	if r.countFound() != created {
		return false
	}
	switch {
	case r.run.Status == queue.Completed:
		var got, want any
		if r.end == nil || r.end.Phase != machine.Succeeded {
			return false
		}
		text, err := json.Marshal(newOutput(r.end.Outputs))
		return err == nil && json.Unmarshal(text, &got) == nil && json.Unmarshal(r.run.Result, &want) == nil && reflect.DeepEqual(got, want)
	case r.run.Reason == queue.ReasonFailed || r.run.Reason == queue.ReasonError:
		return r.end != nil && r.end.Msg == r.run.Error
	}
	return r.end == nil
}

// version returns the version that the record of a child names, or "".
func (c *children) version() string {
	for _, record := range c.records {
		if record == nil {
			continue
		}
		if words := strings.Fields(record.Fields["node"]); len(words) == 3 {
			return words[1]
		}
	}
	return ""
}
