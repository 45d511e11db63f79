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

// replay follows a run again, from its beginning, with the records of its children. Nothing is stored for it: a machine gives
// the same steps for the same ends.
type replay struct {
	run      *queue.Record
	now      time.Time
	inputs   map[string]any
	took     map[string]int64 // of a part
	plan     *plan.Definition
	template *plan.Template
	children *children

	machine *machine.Machine
	made    map[string]bool // names of the children that the run has, or is about to create
	order   []*sight        // the calls, in the order in which they began
	sights  map[string]*sight
	end     *machine.End
	context context.Context // of the reading
	budget  *budget

	first   map[string]bool // names of children whose ends come before others of the same instant
	tied    []string        // those whose ends came behind another one of the same instant
	waiting []*queue.Record // children that have ended and that the machine has not seen yet, by the instant of their end
}

// sight is what a replay sees of a call.
type sight struct {
	node, key string
	children  []string     // names; several if the run has tried it again
	end       *machine.End // nil: it is under way
}

// mostOrders is how many orders of ends are tried.
const mostOrders = 20

// explain replays the run. The order of two ends of one ms is not stored. If the first order does not lead to all children that the run has
// created, others are tried, and the one that leads to the most of them is kept.
func (r *replay) explain(ctx context.Context, created int) error {
	r.first = map[string]bool{}
	if err := r.follow(ctx); err != nil {
		return err
	}
	best, last := r.found(), true
	tied := r.tied
	for tries := 0; best < created && len(tied) > 0 && tries < mostOrders; tries++ {
		name := tied[0]
		tied = tied[1:]
		r.first[name] = true
		if err := r.follow(ctx); err != nil {
			return err
		}
		if n := r.found(); n > best {
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

// follow replays the run. Children that ended because the run did are no news for the machine.
func (r *replay) follow(ctx context.Context) (err error) {
	r.context = ctx
	r.budget.begin()
	defer func() {
		r.budget.stop()
		if p := recover(); p != nil {
			s, is := p.(stopped)
			if !is {
				panic(p)
			}
			err = s.error
		}
	}()
	at, err := r.begun(ctx)
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
			for _, other := range r.waiting {
				if len(r.tied) == mostOrders || !other.CompletedAt.Equal(next.CompletedAt) {
					break
				}
				r.tied = append(r.tied, r.nameOf(other))
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

// begun returns when the run began: the first claim is not stored, and the first children follow it at once.
func (r *replay) begun(ctx context.Context) (time.Time, error) {
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
		for _, c := range r.template.DAG.Nodes { // one call reads them all
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
	if len(children) > 0 { // also if the clock of Redis was set back since, and the run was claimed again
		at = slices.MinFunc(children, time.Time.Compare)
	}
	return at, nil
}

// learn reads children. The budget does not count how long that takes.
func (r *replay) learn(ctx context.Context, names []string) error {
	r.budget.stop()
	defer r.budget.begin()
	return r.children.learn(ctx, names)
}

// until returns the instant up to which limits of waits have passed.
func (r *replay) until() time.Time {
	if r.run.Status.Ended() {
		return r.run.CompletedAt.Add(time.Millisecond)
	}
	return r.now
}

func namesOf(s machine.Steps) (all []string) {
	for i := range s.Create {
		all = append(all, s.Create[i].Name)
	}
	return all
}

// take reads the children of some steps.
func (r *replay) take(ctx context.Context, s machine.Steps) error {
	r.end = s.End
	if s.End != nil {
		return nil // the run has created no more
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
			return -1 // behind those of the same instant
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
	over := r.run.CompletedAt
	if !r.run.Status.Ended() {
		over = r.run.Until
	}
	return !over.IsZero() && (child.CompletedAt.After(over) && r.run.Status.Ended() || byOwner && !child.CompletedAt.Before(over))
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

// stopped ends a replay within a step of the machine, which can be long: nodes that take no time have no other end.
type stopped struct{ error }

// found returns how many of the children that the run has created were reached and are stored.
func (r *replay) found() (n int) {
	for name := range r.made {
		if r.children.records[name] != nil {
			n++
		}
	}
	return n
}

// fits reports whether the definition explains an ended run: all its children, and its result.
func (r *replay) fits(created int) bool {
	if r.found() != created {
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

// version returns the version of the definition that the record of a child names, or "".
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
