package agentwait

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Future is a child of an agent: what it gives, T, is there when a wait says so.
type Future[T any] struct {
	*child
	patience   time.Duration
	continueOn Ending
}

// Awaitable is a Future of any type.
type Awaitable interface {
	member() (c *child, patience time.Duration, continueOn Ending)
}

// child is what the agent knows of a task of its own.
type child struct {
	of       *Agent // in this run
	agent    string
	id       string
	kind     string
	priority int
	err      error // it could not be scheduled
	told     bool  // a call has returned that error
}

func (f *Future[T]) member() (*child, time.Duration, Ending) {
	if f == nil {
		return nil, 0, 0
	}
	return f.child, f.patience, f.continueOn
}

// ID is the task's.
func (f *Future[T]) ID() string { return f.made().id }

// Kind is the task's.
func (f *Future[T]) Kind() string { return f.made().kind }

// Within is the same task with a limit of its own in a wait: so long after the wait
// begins, it is cancelled, and the wait goes on. A Signal takes none, as nothing is to
// cancel it, and a task that is given twice the same in each place: otherwise the wait is
// a refusal.ErrInvalid.
func (f *Future[T]) Within(d time.Duration) *Future[T] {
	g := *f.made()
	g.patience = d
	return &g
}

// ContinueOn is the same task in a wait that counts it as done if it ends in one of these
// ways. A task that is given twice takes the same in each place.
func (f *Future[T]) ContinueOn(endings Ending) *Future[T] {
	g := *f.made()
	g.continueOn |= endings
	return &g
}

// name is the last part of its id.
func (c *child) name() string { return nameOf(c.id) }

func nameOf(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// Schedule makes a child of the agent: the payload is in as JSON, or the bytes that it
// is. Nothing is sent yet: it is made with the next wait, or by Start. What is wrong with
// it the first call returns that is about it: a wait for it, Cancel, Start or Checkpoint. If
// none is, the agent ends as FAILED with that.
//
// task.ID is the name of the child, any that does not begin with "s-" and is no number; a
// child without one is counted. A name lets the code around it change while agents run. An
// IdempotencyKey is a name by which the same child may be scheduled twice: the second time the
// first child is meant, and whatever else the task says is ignored.
func Schedule[T any](a *Agent, in any, task queue.Task) *Future[T] {
	a.given()
	payload, err := encode(in)
	if err != nil {
		err = fmt.Errorf("the payload of a child of kind %s has no JSON: %w", task.Kind, err)
	}
	if in != nil {
		task.Payload = payload
	}
	if err == nil && task.ID != "" {
		err = checkName(task.ID)
	}
	if err == nil && task.IdempotencyKey != "" {
		if there := a.keyed(&task, &err); there != nil {
			return &Future[T]{child: there}
		}
	}
	return &Future[T]{child: a.schedule(task, err)}
}

// keyed makes an idempotency key the child's name, and returns the child that has it already.
func (a *Agent) keyed(task *queue.Task, err *error) *child {
	key := task.IdempotencyKey
	task.IdempotencyKey = ""
	if task.ID != "" && task.ID != key {
		*err = fmt.Errorf("%w: the idempotency key %s of a child is its name, and it has another, %q: leave one of them out",
			refusal.ErrInvalid, clip(key), task.ID)
		return nil
	}
	task.ID, *err = key, checkName(key)
	c := a.scheduled[a.job.ID+"."+key]
	if c != nil && c.kind != task.Kind {
		*err = fmt.Errorf("%w: the idempotency key %s is that of a child of kind %s", refusal.ErrConflict, clip(key), c.kind)
		return nil
	}
	return c
}

// Entry is a child of a list: what ScheduleAll schedules.
type Entry struct {
	queue.Task
	In any // its payload, as Schedule has it
}

// ScheduleAll schedules a list of children. Those that name no queue go to the queue given.
func ScheduleAll[T any](a *Agent, queue string, entries ...Entry) []*Future[T] {
	a.given()
	futures := make([]*Future[T], len(entries))
	for i, e := range entries {
		if e.Queue == "" {
			e.Queue = queue
		}
		futures[i] = Schedule[T](a, e.In, e.Task)
	}
	return futures
}

// checkName refuses names that belong to others.
func checkName(name string) error {
	if _, err := strconv.ParseUint(name, 10, 64); err == nil {
		return fmt.Errorf("%w: name %q is a number, as the children without a name have", refusal.ErrInvalid, name)
	}
	if isSignal(name) {
		return fmt.Errorf("%w: name %q begins with s-, as those of signals do: use Signal", refusal.ErrInvalid, name)
	}
	if strings.Contains(name, ".") {
		return fmt.Errorf("%w: name %q has a dot: it is the name of the child alone", refusal.ErrInvalid, name)
	}
	return nil
}

func (a *Agent) schedule(task queue.Task, err error) *child {
	if a.inside != "" { // it is not counted, since the replay does not come here
		return &child{of: a, agent: a.job.ID, kind: task.Kind, err: a.barred()}
	}
	name := task.ID
	if name == "" {
		a.children++
		name = strconv.FormatInt(a.children, 10)
	}
	task.ID = a.job.ID + "." + name
	c := &child{of: a, agent: a.job.ID, id: task.ID, kind: task.Kind, priority: task.Priority, err: err}
	if c.err == nil {
		_, c.err = queue.PartitionOf(c.id)
	}
	if c.err == nil && a.named[name] {
		c.err = fmt.Errorf("%w: the agent has two children of the name %q", refusal.ErrInvalid, name)
	}
	if c.err != nil {
		a.unfit = append(a.unfit, c)
		return c
	}
	a.named[name] = true
	a.scheduled[task.ID] = c
	a.unsent = append(a.unsent, task)
	if !isSignal(name) { // which a later run may know as a child that is there
		a.since = append(a.since, task)
		digestChild(a.made, &task)
	}
	return c
}

// Child is a task that the agent made before, by its name or number: after a Checkpoint,
// whose replay does not schedule it again.
func Child[T any](a *Agent, name string) *Future[T] { return Of[T](a, a.given().job.ID+"."+name) }

// Of is the future of a task by its id, which must be a child of the agent: waits and
// Cancel return ErrNotOwner for any other.
func Of[T any](a *Agent, id string) *Future[T] {
	c := &child{of: a, agent: a.given().job.ID, id: id}
	// A child of a child has a dot more, and a hook of one, which nobody owns, a "!".
	if name, mine := strings.CutPrefix(id, a.job.ID+"."); !mine || strings.ContainsAny(name, ".!") {
		c.err = fmt.Errorf("%w: %s", ErrNotOwner, id)
	} else {
		_, c.err = queue.PartitionOf(id)
	}
	return &Future[T]{child: c}
}

// vet refuses futures that are none of the agent's, or that could not be scheduled; word
// is what the call has them for.
func (a *Agent) vet(word string, futures []Awaitable) error {
	var all []error
	for i, f := range futures {
		var c *child
		if f != nil {
			c, _, _ = f.member()
		}
		switch {
		case c == nil:
			all = append(all, fmt.Errorf("%s %d: %w: it is no future: give what Schedule, Promise, Signal, Child or Of returned", word, i, refusal.ErrInvalid))
		case c.err != nil:
			c.told = true
			all = append(all, fmt.Errorf("%s %d: %w", word, i, c.err))
		case c.agent != a.job.ID:
			all = append(all, fmt.Errorf("%s %d: %w: %s", word, i, ErrNotOwner, c.id))
		}
	}
	return errors.Join(all...)
}

// isSignal tells whether the name of a child is that of a signal.
func isSignal(name string) bool { return strings.HasPrefix(name, "s-") }
