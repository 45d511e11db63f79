package typed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Kind is a kind of tasks with arguments of type In and results of type Out. Only Name is required. A Kind is
// usually a variable of a package, and is not changed after it was used. It is safe for concurrent use.
type Kind[In, Out any] struct {
	// Name is the kind in queue.Task and in other languages.
	Name string
	// Queue is the queue of the tasks. Defaults to "default". Workers must take tasks from it.
	Queue string
	// Defaults are the settings of tasks for which With sets nothing else.
	Defaults queue.Defaults

	task queue.Task // the fields that With has set
}

// With returns the kind with settings for its tasks: each field of task that is not zero. Kind and Payload must
// be zero. With can be called again on the result, and then adds to the settings.
func (k Kind[In, Out]) With(task queue.Task) Kind[In, Out] {
	source, to := reflect.ValueOf(task), reflect.ValueOf(&k.task).Elem()
	for i := range source.NumField() {
		if !source.Field(i).IsZero() {
			to.Field(i).Set(source.Field(i))
		}
	}
	return k
}

// Task returns the task that Enqueue would store. It makes no call, so the defaults of the kind may not be stored
// yet: call Define or [queue.Queue.EnsureKind] first. Task returns [refusal.ErrInvalid] if args cannot be encoded as
// JSON.
func (k Kind[In, Out]) Task(args In) (queue.Task, error) {
	task, err := k.settings()
	if err != nil {
		return queue.Task{}, err
	}
	if task.Payload, err = encode(args); err != nil {
		return queue.Task{}, fmt.Errorf("%w: the arguments of kind %s (%v) cannot be encoded as JSON: %w", refusal.ErrInvalid, refusal.Clip(k.Name), reflect.TypeFor[In](), err)
	}
	return task, nil
}

// settings returns the task without its payload.
func (k Kind[In, Out]) settings() (queue.Task, error) {
	task := k.task
	if task.Kind != "" {
		return task, refusal.Invalid("kind", "%q cannot be set by With: it is the Name of the Kind", refusal.Clip(task.Kind))
	}
	if task.Payload != nil {
		return task, refusal.Invalid("payload", "cannot be set by With: it is made from the arguments")
	}
	task.Kind, task.Queue = k.Name, cmp.Or(task.Queue, k.Queue)
	return task, nil
}

// Define stores the defaults of the kind, and replaces those that it had. A worker does so when it starts. Define is
// for programs that set up a namespace before others start.
func (k Kind[In, Out]) Define(ctx context.Context, q *queue.Queue) error {
	return q.DefineKind(ctx, k.Name, k.Defaults)
}

// Enqueue stores a task, and returns when Redis has acknowledged it. The first Enqueue of a program stores the
// defaults of the kind before that, if the kind has none. Enqueue returns the errors of [queue.Queue.Enqueue]. If
// Redis is away when the defaults must be stored, it returns [refusal.ErrUnavailable]; the next Enqueue tries again.
func (k Kind[In, Out]) Enqueue(ctx context.Context, q *queue.Queue, args In) (queue.Receipt, error) {
	task, err := k.Task(args)
	if err == nil {
		err = k.ensure(ctx, q)
	}
	if err != nil {
		return queue.Receipt{}, refusal.Failed("enqueue", "", err)
	}
	return q.Enqueue(ctx, task)
}

// EnqueueAll stores a list of tasks, up to 500 in a round trip, as [queue.Queue.EnqueueAll] does. If the arguments of
// one cannot be encoded, it stores none.
func (k Kind[In, Out]) EnqueueAll(ctx context.Context, q *queue.Queue, args []In) ([]queue.Receipt, error) {
	tasks := make([]queue.Task, len(args))
	for i := range args {
		var err error
		if tasks[i], err = k.Task(args[i]); err != nil {
			return nil, refusal.Failed("enqueue", "", fmt.Errorf("task %d: %w", i, err))
		}
	}
	if err := k.ensure(ctx, q); err != nil {
		return nil, refusal.Failed("enqueue", "", err)
	}
	return q.EnqueueAll(ctx, tasks)
}

// ensure stores the defaults of the kind if it has none. It does not return ErrUnknown, since no task was sent.
func (k Kind[In, Out]) ensure(ctx context.Context, q *queue.Queue) error {
	err := q.EnsureKind(ctx, k.Name, k.Defaults)
	if errors.Is(err, refusal.ErrUnknown) {
		return fmt.Errorf("%w: the task was not sent, since it is unknown whether the defaults of its kind were stored", refusal.ErrUnavailable)
	}
	return err
}

// Result waits until a task of the kind has ended, as [queue.Queue.Result] does. It returns the task's result, or the
// error that describes any other end. It returns [refusal.ErrInvalid] for a task of another kind. The error of a
// result that cannot be decoded names the kind and Out.
func (k Kind[In, Out]) Result(ctx context.Context, q *queue.Queue, id string) (out Out, err error) {
	r, err := q.Wait(ctx, id)
	if err != nil {
		return out, err
	}
	if r.Kind != k.Name {
		return out, refusal.Failed("result", id, refusal.Invalid("id", "is that of a task of kind %s, not %s", r.Kind, k.Name))
	}
	result, err := r.Outcome()
	if err != nil {
		return out, err
	}
	if out, err = decode[Out](result); err != nil {
		return out, refusal.Failed("result", id, fmt.Errorf("the result of kind %s cannot be decoded as %v: %w", k.Name, reflect.TypeFor[Out](), jsonx.Plain(err)))
	}
	return out, nil
}

// Run enqueues a task and waits for its result, as Enqueue and Result do. If ctx ends while the task runs, the task
// continues, and the error names its id (*refusal.Error). Give the task a Timeout if it must not outlive
// its caller.
func (k Kind[In, Out]) Run(ctx context.Context, q *queue.Queue, args In) (out Out, err error) {
	r, err := k.Enqueue(ctx, q, args)
	if err != nil {
		return out, err
	}
	return k.Result(ctx, q, r.ID)
}

// Handle registers the handler of the kind, as [worker.Handle] does, and the defaults, as worker.Defaults does. A task
// whose payload cannot be decoded as In fails and is not retried. Handle panics if the kind has a handler or defaults
// already, if an argument is nil, and after the worker's Run. The worker's Run logs a warning if the worker takes no
// tasks from the kind's queue.
func (k Kind[In, Out]) Handle(w *worker.Worker, handle func(ctx context.Context, in In) (Out, error)) {
	worker.Handle(w, k.Name, handle)
	k.defaults(w)
}

// HandleAgent registers the handler of the kind as an agent, as [agentwait.Handle] does, and its defaults. It
// panics as Handle does.
func (k Kind[In, Out]) HandleAgent(w *worker.Worker, handle func(a *agentwait.Agent, in In) (Out, error)) {
	agentwait.Handle(w, k.Name, handle)
	k.defaults(w)
}

func (k Kind[In, Out]) defaults(w *worker.Worker) {
	w.WarnUnserved(k.Name, cmp.Or(k.Queue, "default"))
	if k.Defaults != (queue.Defaults{}) {
		w.Defaults(k.Name, k.Defaults)
	}
}

// Schedule schedules a task as a child of an agent, as [agentwait.Schedule] does. The first Schedule of a program
// stores the defaults of the kind, if the kind has none. Other calls of Schedule make no call to Redis.
func (k Kind[In, Out]) Schedule(a *agentwait.Agent, args In) *agentwait.Future[Out] {
	task, err := k.settings()
	if err != nil {
		return agentwait.Schedule[Out](a, unfit{err}, task)
	}
	if k.Defaults != (queue.Defaults{}) {
		_ = a.EnsureKind(k.Name, k.Defaults) // after an error the agent can do nothing more, so the child is not created
	}
	return agentwait.Schedule[Out](a, any(args), task)
}

// unfit is the payload of a child that must not be scheduled.
type unfit struct{ err error }

// MarshalJSON returns the reason.
func (u unfit) MarshalJSON() ([]byte, error) { return nil, u.err }

// encode returns args as JSON, and a []byte as it is.
func encode[In any](args In) ([]byte, error) {
	if raw, ok := any(args).([]byte); ok {
		return raw, nil
	}
	return json.Marshal(args)
}

// decode is the reverse of encode. A task without a result has the zero value.
func decode[Out any](result []byte) (out Out, err error) {
	if raw, ok := any(&out).(*[]byte); ok {
		*raw = result
		return out, nil
	}
	if len(result) == 0 {
		return out, nil
	}
	err = json.Unmarshal(result, &out)
	return out, err
}
