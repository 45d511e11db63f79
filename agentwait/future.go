package agentwait

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/queue"
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
	agent    string
	id       string
	kind     string
	priority int
	err      error // it could not be scheduled
}

func (f *Future[T]) member() (*child, time.Duration, Ending) {
	return f.child, f.patience, f.continueOn
}

// ID is the task's.
func (f *Future[T]) ID() string { return f.id }

// Kind is the task's.
func (f *Future[T]) Kind() string { return f.kind }

// Within is the same task with a limit of its own in a wait: so long after the wait
// begins, it is cancelled, and the wait goes on.
func (f *Future[T]) Within(d time.Duration) *Future[T] {
	g := *f
	g.patience = d
	return &g
}

// ContinueOn is the same task in a wait that counts it as done if it ends in one of these
// ways.
func (f *Future[T]) ContinueOn(endings Ending) *Future[T] {
	g := *f
	g.continueOn |= endings
	return &g
}

// name is the last part of its id.
func (c *child) name() string { return nameOf(c.id) }

func nameOf(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// Schedule makes a child of the agent: the payload is in as JSON, or the bytes that it
// is. Nothing is sent yet: it is made with the next wait, or by Start. What is wrong with
// it the wait returns.
//
// task.ID is the name of the child, any that does not begin with "s-" and is no number; a
// child without one is counted. A name lets the code around it change while agents run.
func Schedule[T any](a *Agent, in any, task queue.Task) *Future[T] {
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
	return &Future[T]{child: a.schedule(task, err)}
}

// checkName refuses names that belong to others.
func checkName(name string) error {
	if _, err := strconv.ParseUint(name, 10, 64); err == nil {
		return fmt.Errorf("%w: name %q is a number, as the children without a name have", queue.ErrInvalid, name)
	}
	if isSignal(name) {
		return fmt.Errorf("%w: name %q begins with s-, as those of signals do: use Signal", queue.ErrInvalid, name)
	}
	if strings.Contains(name, ".") {
		return fmt.Errorf("%w: name %q has a dot: it is the name of the child alone", queue.ErrInvalid, name)
	}
	return nil
}

func (a *Agent) schedule(task queue.Task, err error) *child {
	name := task.ID
	if name == "" {
		a.children++
		name = strconv.FormatInt(a.children, 10)
	}
	task.ID = a.job.ID + "." + name
	c := &child{agent: a.job.ID, id: task.ID, kind: task.Kind, priority: task.Priority, err: err}
	if c.err == nil {
		_, c.err = queue.PartitionOf(c.id)
	}
	if c.err == nil && a.named[name] {
		c.err = fmt.Errorf("%w: the agent has two children of the name %q", queue.ErrInvalid, name)
	}
	a.named[name] = true
	if c.err == nil {
		a.unsent = append(a.unsent, task)
		if !isSignal(name) { // which a later run may know as a child that is there
			a.since = append(a.since, task)
			digestChild(a.made, &task)
		}
		a.scheduled[task.ID] = c
	}
	return c
}

// Child is a task that the agent made before, by its name or number: after a Checkpoint,
// whose replay does not schedule it again.
func Child[T any](a *Agent, name string) *Future[T] {
	c := &child{agent: a.job.ID, id: a.job.ID + "." + name}
	_, c.err = queue.PartitionOf(c.id)
	return &Future[T]{child: c}
}

// Of is the future of a task by its id, which must be a child of the agent: waits and
// Cancel return ErrNotOwner for any other.
func Of[T any](a *Agent, id string) *Future[T] {
	c := &child{agent: a.job.ID, id: id}
	if !strings.HasPrefix(id, a.job.ID+".") || strings.Contains(id[len(a.job.ID)+1:], ".") {
		c.err = fmt.Errorf("%w: %s", ErrNotOwner, id)
	}
	return &Future[T]{child: c}
}

// Start makes the children that were scheduled, without a wait: 500 a round trip. A child
// that is refused is forgotten, and is what Start returns the error of.
func (a *Agent) Start() error {
	if a.gone != nil {
		return a.gone
	}
	// What the children were made of by Rand or Now must be the same in a replay.
	if err := a.writeEntries(); err != nil || len(a.unsent) == 0 {
		return err
	}
	for i := range a.unsent {
		if err := a.unsent[i].Check(a.q.MaxBytes()); err != nil {
			return a.refused(a.unsent[i].ID, err)
		}
	}
	receipts, err := a.q.EnqueueAll(a, a.unsent)
	if err != nil {
		return a.trouble(err)
	}
	sent := a.unsent
	a.unsent = nil
	for i, r := range receipts {
		if r.Err != nil {
			return a.refused(sent[i].ID, r.Err)
		}
	}
	return nil
}

// refused makes of the refusal of a child what it means for the agent, and forgets it.
func (a *Agent) refused(id string, err error) error {
	same := func(t queue.Task) bool { return t.ID == id }
	if i := slices.IndexFunc(a.since, same); errors.Is(err, queue.ErrConflict) && i >= 0 {
		return a.childDiverged(&a.since[i])
	}
	if errors.Is(err, queue.ErrOwnerEnded) {
		return a.trouble(fmt.Errorf("%w: %w", queue.ErrNotHeld, err))
	}
	if c := a.scheduled[id]; c != nil && c.err == nil && !infrastructure(err) {
		c.err = err
		a.unsent = slices.DeleteFunc(a.unsent, same)
		a.since = slices.DeleteFunc(a.since, same)
		a.made = newDigest()
		for i := range a.since {
			digestChild(a.made, &a.since[i])
		}
	}
	return a.trouble(err)
}

// isSignal tells whether the name of a child is that of a signal.
func isSignal(name string) bool { return strings.HasPrefix(name, "s-") }
