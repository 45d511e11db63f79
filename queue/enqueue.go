package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

const maxCall = 4 << 20 // bytes of tasks in a call

// aMoment is how long an Enqueue whose context has ended waits to learn whether its call had an effect.
const aMoment = 50 * time.Millisecond

// Enqueue stores a task, and returns when Redis has acknowledged it. An acknowledged task is kept
// until it has ended, and then for its retention.
//
// If it returns [refusal.ErrUnknown], the task may have been stored. With every other error of package
// refusal nothing was stored. Such errors are [refusal.ErrInvalid], [refusal.ErrConflict], [refusal.ErrOwnerEnded],
// [refusal.ErrNotFound] (there is no owner), [refusal.ErrFull] and [refusal.ErrUnavailable].
// Concurrent calls share round trips.
func (q *Queue) Enqueue(ctx context.Context, task Task) (Receipt, error) {
	if err := q.ready(ctx); err != nil {
		return Receipt{}, refusal.Failed("enqueue", "", err)
	}
	span := q.traceSend(ctx, &task)
	receipt, err := q.enqueue(ctx, &task)
	span.Sent(receipt.ID, err)
	return receipt, err
}

func (q *Queue) enqueue(ctx context.Context, task *Task) (Receipt, error) {
	p, err := q.place(task)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Receipt{}, refusal.Failed("enqueue", task.ID, err)
	}
	if ctx.Done() != nil { // the call may return while its task is being sent, and the caller then reuses these
		task.Payload, task.Headers = bytes.Clone(task.Payload), maps.Clone(task.Headers)
	}
	id := q.name(p, task)
	me := &submission{task: task, id: id, mayLeave: ctx.Done() != nil, done: make(chan struct{})}
	b := &q.batchers[p]
	b.add(me, func(ctx context.Context, batch []*submission) { q.send(ctx, p, batch) }) // each submission has its error
	select {
	case <-me.done:
		return me.receipt, refusal.Failed("enqueue", me.receipt.ID, me.err)
	case <-ctx.Done():
	}
	if b.leave(me) {
		return Receipt{}, refusal.Failed("enqueue", "", context.Cause(ctx))
	}
	// A call that is not with Redis now ends at once if nobody waits for it, and it is certain that nothing was stored.
	soon := time.NewTimer(aMoment)
	defer soon.Stop()
	select {
	case <-me.done:
		if errors.Is(me.err, errNobodyWaits) && !errors.Is(me.err, refusal.ErrUnknown) {
			return Receipt{}, refusal.Failed("enqueue", "", context.Cause(ctx))
		}
		if me.err == nil || !errors.Is(me.err, refusal.ErrUnknown) {
			return me.receipt, refusal.Failed("enqueue", me.receipt.ID, me.err)
		}
	case <-soon.C:
	}
	return Receipt{ID: id}, refusal.Failed("enqueue", id, fmt.Errorf("%w (%w)", refusal.ErrUnknown, context.Cause(ctx)))
}

// EnqueueAll stores a list of tasks, up to 500 in a round trip. If one of the tasks is invalid by
// itself, it stores none and returns [refusal.ErrInvalid]. What only Redis can refuse (a deadline
// in the past by its clock, a known key with other content) is in that task's Receipt.Err, and the
// others are stored.
//
// If EnqueueAll returns the error of a call, it has also set Receipt.Err for each task that was not
// acknowledged. Tasks without Err are stored.
func (q *Queue) EnqueueAll(ctx context.Context, tasks []Task) ([]Receipt, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("enqueue all", "", err)
	}
	tasks, batch := q.traceSendAll(ctx, tasks)
	receipts, err := q.enqueueAll(ctx, tasks)
	for i := range receipts {
		batch.Sent(i, receipts[i].ID, receipts[i].Err)
	}
	batch.End(err)
	return receipts, err
}

func (q *Queue) enqueueAll(ctx context.Context, tasks []Task) ([]Receipt, error) {
	lines := make([][]*submission, q.Partitions())
	all := make([]*submission, len(tasks))
	here := q.spread()
	// Consecutive tasks go to the same partition, so that a long list fills whole calls.
	run := min(max((len(tasks)+q.Partitions()-1)/q.Partitions(), 50), maxList)
	for i := range tasks {
		if i > 0 && i%run == 0 {
			here = q.spread()
		}
		p, err := q.placeAt(&tasks[i], here)
		if err != nil {
			return nil, refusal.Failed("enqueue", "", fmt.Errorf("task %d: %w", i, err))
		}
		all[i] = &submission{task: &tasks[i], id: q.name(p, &tasks[i])}
		lines[p] = append(lines[p], all[i])
	}

	var group sync.WaitGroup
	errs := make(chan error, len(lines))
	for p, line := range lines {
		if len(line) > 0 {
			group.Go(func() {
				b := batcher{waiting: line}
				for batch := b.next(); len(batch) > 0; batch = b.next() {
					if err := q.send(ctx, p, batch); err != nil {
						errs <- err
						b.fail(err)
						return
					}
				}
			})
		}
	}
	group.Wait()
	close(errs)

	receipts := make([]Receipt, len(tasks))
	for i, p := range all {
		receipts[i] = p.receipt
		receipts[i].Err = p.err
	}
	return receipts, refusal.Failed("enqueue", "", <-errs)
}

// spread returns the partition of the next root task. Partitions take turns.
func (q *Queue) spread() int {
	return int((q.turn.Add(1) - 1) % uint32(q.Partitions()))
}

func (q *Queue) place(task *Task) (int, error) { return q.placeAt(task, q.spread()) }

// placeAt checks a task and returns its partition: the one that it must be in, otherwise here.
func (q *Queue) placeAt(task *Task, here int) (int, error) {
	if err := task.check(q.config.MaxBytes); err != nil {
		return 0, err
	}
	p, fixed, err := task.home(q.Partitions())
	if !fixed {
		p = here
	}
	return p, err
}

// name returns the id of a task: the given one, that of its name, or a new one.
func (q *Queue) name(p int, task *Task) string {
	switch {
	case task.ID != "":
		return task.ID
	case task.Name != "":
		return q.IDOf(task.Name)
	}
	return q.ids.Next(p, time.Now())
}

// send makes one call and gives each submission its receipt or error. If another task has one of
// the ids already (two programs made the same one), it makes a new id and calls again. If the call
// fails, send returns its error, and gives it to each submission.
func (q *Queue) send(ctx context.Context, p int, batch []*submission) error {
	for len(batch) > 0 {
		s := shapes{rows: make([]any, 0, 3*len(batch))}
		if slices.ContainsFunc(batch, func(c *submission) bool { return c.task.fixed() }) {
			s.call = NewCall()
		}
		for _, c := range batch {
			s.add(c.task, c.id)
		}
		replies, err := engine.Elements(q.engine.Call(ctx, p, "enqueue", s.args(make([]any, 0, 16+3*len(batch)))...))
		if err == nil && len(replies) != len(batch) {
			err = fmt.Errorf("%d answers for %d tasks", len(replies), len(batch))
		}
		if err != nil {
			for _, c := range batch {
				c.receipt.ID, c.err = c.id, err
			}
			return err
		}
		var again []*submission
		seen := map[string]bool{} // ids that callers have given
		for i, c := range batch {
			switch {
			case c.read(replies[i]):
				c.id = q.ids.Next(p, time.Now())
				again = append(again, c)
			case c.task.fixed():
				c.receipt.New = c.receipt.New && !seen[c.id] // an earlier task of this call has made it
				seen[c.id] = true
			}
		}
		batch = again
	}
	return nil
}

// read reads the answer for one task: its deadline, or a word and its values. It reports whether
// another task has the id.
func (c *submission) read(reply any) bool {
	if deadline, ok := reply.(string); ok {
		c.receipt = Receipt{ID: c.id, Deadline: engine.Instant(deadline), New: true}
		return false
	}
	words, err := engine.List(reply, nil, 2)
	if err != nil {
		c.err = err
		return false
	}
	word, id, more := engine.Text(words[0]), engine.Text(words[1]), any("")
	if len(words) > 2 {
		more = words[2]
	}
	c.receipt.ID = id
	switch word {
	case "KNOWN":
		c.receipt.Deadline = engine.Instant(more)
	case "CONFLICT":
		c.err = refusal.ErrConflict
	case "TAKEN":
		switch {
		case !c.task.fixed():
			return true
		case c.task.Name != "":
			c.err = fmt.Errorf("%w: the task with the name %q has another kind, queue or payload", refusal.ErrConflict, refusal.Clip(c.task.Name))
		case names.OwnerOf(id) == "":
			c.err = fmt.Errorf("%w: the task with this id has another kind, queue or payload", refusal.ErrConflict)
		default:
			c.err = fmt.Errorf("%w: the owner has a child of this name with other content", refusal.ErrConflict)
		}
	case "OWNER":
		if c.err = refusal.ErrOwnerEnded; engine.Text(more) == "" {
			c.err = fmt.Errorf("owner %s: %w", id, refusal.ErrNotFound)
		}
		c.receipt.ID = c.id
	case "INVALID":
		c.receipt.ID = ""
		c.err = refusal.Invalid(id, "%s", engine.Text(more))
	case "BROKEN":
		c.err = broken(words[2:])
	default:
		c.err = engine.Unexpected("answer to enqueue", words)
	}
	return false
}
