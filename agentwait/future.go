package agentwait

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Future is a child of an agent. Its result, of type T, is available when a wait has reported its end.
type Future[T any] struct {
	*child
	patience   time.Duration
	continueOn Ending
}

// Awaitable is a Future of any type.
type Awaitable interface {
	member() (c *child, patience time.Duration, continueOn Ending)
}

// child is the state of a child in this run of the agent.
type child struct {
	owner    *Agent // in this run
	agent    string // id of the agent
	id       string
	kind     string
	priority int
	err      error // set if it could not be scheduled
	reported bool  // whether a call has returned err
}

func (f *Future[T]) member() (*child, time.Duration, Ending) {
	if f == nil {
		return nil, 0, 0
	}
	return f.child, f.patience, f.continueOn
}

// ID returns the id of the task.
func (f *Future[T]) ID() string { return f.mustFuture().id }

// Kind returns the kind of the task. It is empty for a future of Child or Of.
func (f *Future[T]) Kind() string { return f.mustFuture().kind }

// Within returns a future of the same task with a limit of its own in a wait: if the task has not
// ended d after the wait began, it is cancelled, and the wait continues. A wait returns
// refusal.ErrInvalid for a Signal with Within, because no wait cancels a signal, and for a task that
// is passed twice with different limits.
func (f *Future[T]) Within(d time.Duration) *Future[T] {
	g := *f.mustFuture()
	g.patience = d
	return &g
}

// ContinueOn returns a future of the same task whose end in one of these ways counts as done in a
// wait. If a task is passed twice with different endings, the wait returns refusal.ErrInvalid.
func (f *Future[T]) ContinueOn(endings Ending) *Future[T] {
	g := *f.mustFuture()
	g.continueOn |= endings
	return &g
}

// name returns the last part of the id.
func (c *child) name() string { return nameOf(c.id) }

func nameOf(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// Schedule schedules a child of the agent. Its payload is in, encoded as JSON unless it is a []byte.
// Schedule makes no call to Redis: the next wait, Start, Cancel or Checkpoint creates the child. If
// the child is invalid, the first call that uses it returns the error: a wait for it, Cancel, Start
// or Checkpoint. If no call uses it, the agent ends as FAILED with that error.
//
// task.ID is the name of the child. It must not be a number, begin with "s-", or contain a dot. A
// child without a name gets the next number. With names, the code between two waits can schedule its
// children in another order, leave one out, or schedule one more, while agents run.
//
// task.IdempotencyKey is a name that can be used again: the second call of Schedule returns the
// first child, and ignores the rest of its task. task.Name works in the same way, and is any text of
// up to 128 bytes: "orders/17" is the child with the ID e-orders_2f17, as [queue.Queue.IDOf] writes
// it. If the id would be longer than 512 bytes, a hash of the name takes its place. Any other child
// whose id would be longer is invalid.
//
// With task.Promise, no worker runs the child: it is a question, with in as its payload, that another program
// answers by queue.Resolve. Give task.ResultType, so that an answer that is not a T is refused.
func Schedule[T any](a *Agent, in any, task queue.Task) *Future[T] {
	a.mustAgent()
	payload, err := encode(in)
	if err != nil {
		err = fmt.Errorf("cannot encode the payload of a child of kind %s as JSON: %w", task.Kind, err)
	}
	if in != nil {
		task.Payload = payload
	}
	if err == nil && task.ID != "" {
		err = checkName(task.ID)
	}
	if err == nil && task.Name != "" {
		task.IdempotencyKey, err = a.keyOfName(&task)
	}
	if err == nil && task.IdempotencyKey != "" {
		if existing := a.childOfKey(&task, &err); existing != nil {
			return &Future[T]{child: existing}
		}
	}
	return &Future[T]{child: a.schedule(task, err)}
}

// keyOfName returns the idempotency key of a child with a Name, and removes the Name.
func (a *Agent) keyOfName(task *queue.Task) (string, error) {
	key, err := names.EncodeChild(a.job.ID, task.Name)
	if err == nil && (task.ID != "" || task.IdempotencyKey != "") {
		err = fmt.Errorf("%w: set one of Name, ID and IdempotencyKey of a child, not %s and another one", refusal.ErrInvalid, inQuotes(task.Name))
	}
	task.Name = ""
	return key, err
}

// childOfKey makes the idempotency key the child's name. It returns the child that already has this
// name, or nil.
func (a *Agent) childOfKey(task *queue.Task, err *error) *child {
	key := task.IdempotencyKey
	task.IdempotencyKey = ""
	if task.ID != "" && task.ID != key {
		*err = fmt.Errorf("%w: the idempotency key of a child is its name: set IdempotencyKey %s or ID %q, not both",
			refusal.ErrInvalid, inQuotes(key), task.ID)
		return nil
	}
	task.ID, *err = key, checkName(key)
	c := a.scheduled[a.job.ID+"."+key]
	if c != nil && c.kind != task.Kind {
		*err = fmt.Errorf("%w: the idempotency key %s belongs to a child of kind %s: use another key", refusal.ErrConflict, inQuotes(key), c.kind)
		return nil
	}
	return c
}

// Entry describes a child for ScheduleAll.
type Entry struct {
	queue.Task
	In any // the payload, encoded as in Schedule
}

// ScheduleAll schedules a list of children, as Schedule does. An entry without a Queue gets queue.
func ScheduleAll[T any](a *Agent, queue string, entries ...Entry) []*Future[T] {
	a.mustAgent()
	futures := make([]*Future[T], len(entries))
	for i, e := range entries {
		if e.Queue == "" {
			e.Queue = queue
		}
		futures[i] = Schedule[T](a, e.In, e.Task)
	}
	return futures
}

// checkName returns an error for a name that a child cannot have.
func checkName(name string) error {
	if isNumber(name) {
		return fmt.Errorf("%w: name %q is a number: numbers are for children without a name", refusal.ErrInvalid, name)
	}
	if isSignal(name) {
		return fmt.Errorf("%w: name %q begins with s-, which is for signals: use Signal", refusal.ErrInvalid, name)
	}
	if strings.Contains(name, ".") {
		return fmt.Errorf("%w: name %q has a dot: give the name of the child without its owner's id", refusal.ErrInvalid, name)
	}
	return nil
}

func (a *Agent) schedule(task queue.Task, err error) *child {
	if a.stepName != "" { // children must not be counted here, because a replay does not run the function of the step
		return &child{owner: a, agent: a.job.ID, kind: task.Kind, err: a.stopped()}
	}
	name := task.ID
	if name == "" {
		a.children++
		name = strconv.FormatInt(a.children, 10)
	}
	task.ID = a.job.ID + "." + name
	c := &child{owner: a, agent: a.job.ID, id: task.ID, kind: task.Kind, priority: task.Priority, err: err}
	if c.err == nil {
		_, c.err = queue.PartitionOf(c.id)
	}
	if c.err == nil && a.names[name] {
		c.err = fmt.Errorf("%w: the agent has two children named %q", refusal.ErrInvalid, name)
	}
	if c.err != nil {
		a.invalid = append(a.invalid, c)
		return c
	}
	a.names[name] = true
	a.scheduled[task.ID] = c
	a.unsent = append(a.unsent, task)
	if !isSignal(name) { // a signal is not part of the digest, because it may exist already
		a.recent = append(a.recent, task)
		digestChild(a.digest, &task)
	}
	return c
}

// Child returns the future of an earlier child, by its name or number. Use it after a Checkpoint,
// because a replay does not schedule that child again.
func Child[T any](a *Agent, name string) *Future[T] { return Of[T](a, a.mustAgent().job.ID+"."+name) }

// Of returns the future of a child by its id. If the task is not a child of the agent, waits and Cancel
// return ErrNotOwner.
func Of[T any](a *Agent, id string) *Future[T] {
	c := &child{owner: a, agent: a.mustAgent().job.ID, id: id}
	// The id of a grandchild has one more dot. The id of a child's hook, a root task, has a "!".
	if name, mine := strings.CutPrefix(id, a.job.ID+"."); !mine || strings.ContainsAny(name, ".!") {
		c.err = fmt.Errorf("%w: %s", ErrNotOwner, id)
	} else {
		_, c.err = queue.PartitionOf(id)
	}
	return &Future[T]{child: c}
}

// checkFutures returns an error if a future is not of a child of the agent, or if the child could
// not be scheduled. word names the futures in the error, for example "member".
func (a *Agent) checkFutures(word string, futures []Awaitable) error {
	var errs []error
	for i, f := range futures {
		var c *child
		if f != nil {
			c, _, _ = f.member()
		}
		switch {
		case c == nil:
			errs = append(errs, fmt.Errorf("%s %d: %w: the future is nil or empty: use what Schedule, Promise, Signal, Child or Of returned", word, i, refusal.ErrInvalid))
		case c.err != nil:
			c.reported = true
			errs = append(errs, fmt.Errorf("%s %d: %w", word, i, c.err))
		case c.agent != a.job.ID:
			errs = append(errs, fmt.Errorf("%s %d: %w: %s", word, i, ErrNotOwner, c.id))
		}
	}
	return errors.Join(errs...)
}

// isNumber reports whether a child's name is the number of a child without a name.
func isNumber(name string) bool {
	_, err := strconv.ParseUint(name, 10, 64)
	return err == nil
}

// isSignal reports whether a child's name is the name of a signal.
func isSignal(name string) bool { return strings.HasPrefix(name, "s-") }
