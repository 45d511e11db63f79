package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Whole is a task with everything that is stored for it.
type Whole struct {
	*queue.Record
	Explanation *Explanation // nil if the task ended or was removed while it was read
	// Children are the newest children of the task that are still stored, at most 100, the newest
	// first. The field children of the record counts all that were created.
	Children []*queue.Record
	// Members are the first members of the wait of an agent, at most 100, in the order of the call. A member whose record does
	// not exist is missing.
	Members []*queue.Record
	Memory  *queue.Memory // the journal of an agent; nil for other tasks, and after the agent's end
}

// newestChildren is the maximum number of children, and of members, that Read returns.
const newestChildren = 100

// Read reads everything that is stored for a task. It changes nothing. It makes a call for each
// part, so the task may change between them. If there is no such task, it returns
// [refusal.ErrNotFound].
func Read(ctx context.Context, q *queue.Queue, id string) (*Whole, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("read", "", err)
	}
	record, err := q.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	w := &Whole{Record: record}
	if w.Explanation, err = Explain(ctx, q, id); err != nil && !errors.Is(err, refusal.ErrNotFound) {
		return nil, err
	}
	if w.Fields["children"] != "" {
		if w.Children, err = children(ctx, q, id); err != nil {
			return nil, refusal.Failed("read", id, err)
		}
	}
	if e := w.Explanation; e != nil && e.Wait != nil {
		records, err := q.GetAll(ctx, e.Wait.Tasks[:min(len(e.Wait.Tasks), newestChildren)])
		if err != nil {
			return nil, err
		}
		w.Members = slices.DeleteFunc(records, func(r *queue.Record) bool { return r == nil })
	}
	if w.Fields["journal"] != "" && !w.Status.Ended() {
		if w.Memory, err = claim.Of(q).Recall(ctx, id); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// children returns the newest children of a task.
func children(ctx context.Context, q *queue.Queue, id string) ([]*queue.Record, error) {
	p, err := names.PartitionIn(id, q.Partitions())
	if err != nil {
		return nil, err
	}
	ids, err := q.Client().LRange(ctx, q.Root(p)+":children:"+id, -newestChildren, -1).Result()
	if err != nil {
		return nil, q.Engine().Unread(ctx, p, err)
	}
	slices.Reverse(ids)
	records, err := q.GetAll(ctx, ids)
	return slices.DeleteFunc(records, func(r *queue.Record) bool { return r == nil }), err
}

// childLine is a child in the JSON of a task.
type childLine struct {
	ID     string       `json:"id"`
	Kind   string       `json:"kind"`
	Status queue.Status `json:"status"`
}

type memoryLine struct {
	State    []byte       `json:"state,omitempty"`
	Children int64        `json:"children"`
	Entry    int64        `json:"entry"`
	Entries  []memoryPart `json:"entries"`
}

type memoryPart struct {
	Entry int64  `json:"entry"`
	Text  string `json:"text"`
}

// MarshalJSON encodes the task as one object: the fields of the record, and those fields of the
// explanation that the record does not have.
func (w *Whole) MarshalJSON() ([]byte, error) {
	var o jsonx.Object
	o.Word("id", w.ID)
	o.Flag("overdue", w.Overdue)
	if w.Payload != nil {
		o.Word("payload", string(w.Payload))
	}
	o.Fields(w.Fields)
	if e := w.Explanation; e != nil {
		o.Word("why", string(e.Why))
		o.Word("sentence", e.String())
		if e.GivenBack > 0 {
			o.Number("given_back", e.GivenBack)
		}
		o.Value("bound", e.Bound)
		o.Value("ends_by", e.EndsBy)
		if e.Line != nil {
			o.Value("line", e.Line)
		}
		if e.Wait != nil {
			o.Value("wait", e.Wait)
		}
		if len(e.Warnings) > 0 {
			o.Value("warnings", e.Warnings)
		}
	}
	if w.Children != nil {
		lines := make([]childLine, len(w.Children))
		for i, child := range w.Children {
			lines[i] = childLine{child.ID, child.Kind, child.Status}
		}
		o.Value("child_tasks", lines)
	}
	if m := w.Memory; m != nil {
		line := memoryLine{State: m.State, Children: m.Checkpoint.Children, Entry: m.Entries}
		for _, n := range slices.Sorted(maps.Keys(m.Journal)) {
			line.Entries = append(line.Entries, memoryPart{n, m.Journal[n]})
		}
		o.Value("memory", line)
	}
	return o.Close(), nil
}
