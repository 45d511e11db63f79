package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Start enqueues a run of a definition: a task of the kind flow.<id>. With version "", the run takes
// the newest version when it begins. more sets further fields of the task, such as a name or a
// deadline, but not its kind and payload.
//
// Unlike an ordinary enqueue, Start first reads the definition. It returns [refusal.ErrNotFound] if
// the definition or the version does not exist, and [refusal.ErrInvalid] if a parameter is missing
// or unknown. Then nothing is enqueued.
func Start(ctx context.Context, q *queue.Queue, id string, parameters map[string]any, version string, more queue.Task) (queue.Receipt, error) {
	text, storedVersion, err := Get(ctx, q, id, version)
	if err != nil {
		return queue.Receipt{}, nearestFlow(ctx, q, id, err)
	}
	d, err := plan.Read(text)
	if err != nil {
		return queue.Receipt{}, refusal.Failed("start a flow", id, &unreadableError{id, storedVersion, err})
	}
	if err := d.CheckInputs(parameters); err != nil {
		return queue.Receipt{}, refusal.Failed("start a flow", id, err)
	}
	switch {
	case more.Kind != "" && more.Kind != kindOf(id):
		return queue.Receipt{}, refusal.Failed("start a flow", id, refusal.Invalid("kind", "%s must be left out: the kind of a run is %s", refusal.Clip(more.Kind), kindOf(id)))
	case more.Payload != nil:
		return queue.Receipt{}, refusal.Failed("start a flow", id, refusal.Invalid("payload", "must be left out: it is made of the parameters"))
	}
	more.Kind = kindOf(id)
	if version != "" {
		more = withTimes(more, d)
	}
	if more.Payload, err = json.Marshal(input{Parameters: parameters, Version: version}); err != nil {
		return queue.Receipt{}, refusal.Failed("start a flow", id, refusal.Invalid("parameters", "cannot be written as JSON: %v", jsonx.Plain(err)))
	}
	return q.Enqueue(ctx, more)
}

// withTimes sets the timeout, the policy and the hooks of a run to the values of its version.
// Without it the run would get the defaults of its kind, which belong to the newest version.
func withTimes(t queue.Task, d *plan.Definition) queue.Task {
	if t.Timeout == 0 && t.Deadline.IsZero() {
		t.Timeout = spanOf(d.Timeout)
	}
	if t.OnDeadline == "" {
		t.OnDeadline = queue.DeadlineCancelAll
		if d.Fails {
			t.OnDeadline = queue.DeadlineFail
		}
	}
	if t.Hooks == (queue.Hooks{}) {
		t.Hooks = hooksOf(&d.Hooks)
	}
	return t
}

// nearestFlow adds the nearest existing name or version to the error of a missing definition.
func nearestFlow(ctx context.Context, q *queue.Queue, id string, err error) error {
	if !errors.Is(err, refusal.ErrNotFound) {
		return err
	}
	flows, failed := List(ctx, q)
	if failed != nil {
		return err
	}
	var ids []string
	for _, d := range flows {
		if d.ID == id { // the version is missing
			return fmt.Errorf("%w: the newest of its %d versions is %s", err, len(d.Versions), d.Version)
		}
		ids = append(ids, d.ID)
	}
	return fmt.Errorf("%w%s", err, names.Hint(id, ids))
}

// Runs lists the runs of a definition, a page in each call, with the filters and pages of
// [inspect.List]. Live runs come first, in the order of inspect.List, which reads one index after
// the other; within a page the newest run is the first. An ended run that another run has called is
// listed only after its caller has ended.
func Runs(ctx context.Context, q *queue.Queue, id string, f inspect.Filter, page string, n int) (inspect.ListPage, error) {
	if f.Kind != "" && f.Kind != kindOf(id) {
		return inspect.ListPage{}, refusal.Failed("list runs", id, refusal.Invalid("kind", "%s must be left out: the kind of the runs is %s", refusal.Clip(f.Kind), kindOf(id)))
	}
	f.Kind = kindOf(id)
	list, err := inspect.List(ctx, q, f, page, n)
	slices.SortStableFunc(list.Lines, func(a, b inspect.Line) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list, err
}
