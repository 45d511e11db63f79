package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

const maxCall = 4 << 20 // bytes of tasks in a call

// abandonFor bounds how long an Enqueue whose context has ended waits to learn whether its call had
// an effect.
const abandonFor = 50 * time.Millisecond

// Enqueue stores a task, and returns when Redis has acknowledged it. An acknowledged task is kept
// until it has ended, and then for its retention. Concurrent calls share round trips.
//
// If Enqueue returns [refusal.ErrUnknown], the task may have been stored, or may be stored later: also if the
// queue is full, but an earlier try of the call got no reply. With every other error of
// package refusal nothing was stored: [refusal.ErrInvalid], [refusal.ErrConflict],
// [refusal.ErrOwnerEnded], [refusal.ErrNotFound] (there is no owner), [refusal.ErrQueueFull],
// [refusal.ErrFull] and [refusal.ErrUnavailable].
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
	p, id, err := q.place(task, q.spread())
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Receipt{}, refusal.Failed("enqueue", task.ID, err)
	}
	if ctx.Done() != nil { // Enqueue may return while the task is being sent, and the caller may then reuse its buffers
		task.Payload, task.Headers = bytes.Clone(task.Payload), maps.Clone(task.Headers)
	}
	entry := &submission{task: task, id: id, mayLeave: ctx.Done() != nil, done: make(chan struct{})}
	b := &q.batchers[p]
	b.add(entry, func(ctx context.Context, batch []*submission) { q.send(ctx, p, batch) }) // send sets the error of each submission
	select {
	case <-entry.done:
		return entry.receipt, refusal.Failed("enqueue", entry.receipt.ID, entry.err)
	case <-ctx.Done():
	}
	if b.leave(entry) {
		return Receipt{}, refusal.Failed("enqueue", "", q.engine.InVain(ctx))
	}
	// If all its callers have given up, a call ends at once, unless Redis is processing it. Wait for
	// that, because the caller should learn that nothing was stored, rather than ErrUnknown.
	timer := time.NewTimer(abandonFor)
	defer timer.Stop()
	select {
	case <-entry.done:
		if errors.Is(entry.err, errNobodyWaits) && !errors.Is(entry.err, refusal.ErrUnknown) {
			return Receipt{}, refusal.Failed("enqueue", "", q.engine.InVain(ctx))
		}
		if entry.err == nil || !errors.Is(entry.err, refusal.ErrUnknown) {
			return entry.receipt, refusal.Failed("enqueue", entry.receipt.ID, entry.err)
		}
	case <-timer.C:
	}
	return Receipt{ID: id}, refusal.Failed("enqueue", id, fmt.Errorf("%w (%w)", refusal.ErrUnknown, q.engine.InVain(ctx)))
}

// EnqueueAll stores a list of tasks, up to 500 in a round trip. If a task is invalid by itself,
// EnqueueAll stores none and returns [refusal.ErrInvalid]. An error that only Redis can detect is in
// that task's Receipt.Err, and the other tasks are stored. Examples are a deadline in the past by
// the clock of Redis, a known key with other content, and a full queue.
//
// If a call fails, EnqueueAll returns its error, and sets Receipt.Err for each task that was not
// acknowledged. Tasks without Err are stored.
func (q *Queue) EnqueueAll(ctx context.Context, tasks []Task) ([]Receipt, error) {
	if err := q.ready(ctx); err != nil {
		return nil, refusal.Failed("enqueue all", "", err)
	}
	tasks, batch := q.TraceSendAll(ctx, tasks)
	receipts, err := q.enqueueAll(ctx, tasks)
	for i := range receipts {
		batch.Sent(i, receipts[i].ID, receipts[i].Err)
	}
	batch.End(err)
	return receipts, err
}

func (q *Queue) enqueueAll(ctx context.Context, tasks []Task) ([]Receipt, error) {
	partitions := q.engine.Partitions()
	lines := make([][]*submission, partitions)
	submissions := make([]*submission, len(tasks))
	current := q.spread()
	// Consecutive tasks go to the same partition, so that a long list fills whole calls.
	run := min(max((len(tasks)+partitions-1)/partitions, 50), engine.MaxTasks)
	for i := range tasks {
		if i > 0 && i%run == 0 {
			current = q.spread()
		}
		p, id, err := q.place(&tasks[i], current)
		if err != nil {
			return nil, refusal.Failed("enqueue", "", fmt.Errorf("task %d: %w", i, err))
		}
		submissions[i] = &submission{task: &tasks[i], id: id}
		lines[p] = append(lines[p], submissions[i])
	}

	err := q.engine.EachPartition(func(p int) error {
		b := batcher{waiting: lines[p]}
		for _, batch := b.next(); len(batch) > 0; _, batch = b.next() {
			if err := q.send(ctx, p, batch); err != nil {
				b.fail(err)
				return err
			}
		}
		return nil
	})

	receipts := make([]Receipt, len(tasks))
	// After an error of a call, the receipts still matter: some tasks are stored.
	for i, p := range submissions {
		receipts[i] = p.receipt
		receipts[i].Err = p.err
	}
	return receipts, refusal.Failed("enqueue", "", err)
}

// spread returns the partition of the next root task. Partitions take turns.
func (q *Queue) spread() int {
	return int((q.turn.Add(1) - 1) % uint32(q.engine.Partitions()))
}

// place checks a task, and returns its partition and its id. A child must be in its owner's partition.
// A name or an idempotency key determines the partition, so that all producers find the same task. Other
// tasks get the fallback.
func (q *Queue) place(task *Task, fallback int) (p int, id string, err error) {
	if err := task.check(q.config.MaxBytes); err != nil {
		return 0, "", err
	}
	partitions, key := q.engine.Partitions(), task.IdempotencyKey
	switch {
	case task.ID != "":
		if key != "" && strings.Contains(task.ID, ".") {
			return 0, "", refusal.Invalid("idempotency key", "%q cannot be given for a child: its id is its idempotency key", refusal.Clip(key))
		}
		p, err = names.PartitionIn(task.ID, partitions)
		if required := names.PartitionOfKey(key, partitions); err == nil && key != "" && required != p {
			err = refusal.Invalid("id", "%q is in partition %d, and its idempotency key belongs to partition %d: use an id that begins with %d-",
				refusal.Clip(task.ID), p, required, required)
		}
		return p, task.ID, err
	case task.Name != "":
		return names.PartitionOfKey(task.Name, partitions), q.IDOf(task.Name), nil
	case key != "":
		p = names.PartitionOfKey(key, partitions)
	default:
		p = fallback
	}
	return p, q.ids.Next(p, time.Now()), nil
}

// send makes one call and sets the receipt or error of each submission. A generated id can already
// belong to another task, if two programs generated the same one. Then send generates a new id and
// calls again. If the call fails, send returns its error, and sets it for each submission.
func (q *Queue) send(ctx context.Context, p int, batch []*submission) error {
	for len(batch) > 0 {
		s := shapes{rows: make([]any, 0, 3*len(batch))}
		if slices.ContainsFunc(batch, func(c *submission) bool { return c.task.fixed() }) {
			// A chosen id may exist because an earlier try of this call created it. With the identity of the call it counts as new.
			s.call = NewCall()
		}
		for _, c := range batch {
			s.add(c.task, c.id)
		}
		reply, report, err := q.engine.CallReported(ctx, p, "enqueue", s.args(make([]any, 0, 16+3*len(batch)))...)
		replies, err := engine.Elements(reply, err)
		if err == nil && len(replies) != len(batch) {
			err = fmt.Errorf("%d answers for %d tasks", len(replies), len(batch))
		}
		if err != nil {
			for _, c := range batch {
				c.receipt.ID, c.err = c.id, err
			}
			return err
		}
		var taken []*submission
		seen := map[string]bool{} // ids that callers chose, in this call
		for i, c := range batch {
			again := c.readReply(replies[i])
			if report.Lost && errors.Is(c.err, refusal.ErrQueueFull) {
				// The lost try may run when there is room again, or it stored the task, which ended and was removed.
				c.receipt.ID, c.err = c.id, fmt.Errorf("%w (a try got no reply, and was repeated: %v)", refusal.ErrUnknown, c.err)
			}
			switch {
			case again:
				c.id = q.ids.Next(p, time.Now())
				taken = append(taken, c)
			case c.task.fixed():
				c.receipt.New = c.receipt.New && !seen[c.id] // an earlier task of this call created it
				seen[c.id] = true
			}
		}
		batch = taken
	}
	return nil
}

// readReply sets the receipt or the error from the reply for one task: a deadline, or a word and its
// values. It reports whether the id already belongs to another task.
func (c *submission) readReply(reply any) bool {
	if deadline, ok := reply.(string); ok {
		c.receipt = Receipt{ID: c.id, Deadline: engine.Instant(deadline), New: true}
		return false
	}
	words, err := engine.List(reply, nil, 2)
	if err != nil {
		c.err = err
		return false
	}
	word, id, value := engine.Text(words[0]), engine.Text(words[1]), any("")
	if len(words) > 2 {
		value = words[2]
	}
	c.receipt.ID = id
	switch word {
	case "KNOWN":
		c.receipt.Deadline = engine.Instant(value)
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
	case "FULL":
		p, _ := names.PartitionOf(c.id) // the limit is that of the partition
		c.receipt.ID = ""
		c.err = fmt.Errorf("%w: %s has reached its maximum length of %s in partition %d: enqueue the task again later, or raise the length with `curfew queue limit %s --length`",
			refusal.ErrQueueFull, id, engine.Text(value), p, id)
	case "OWNER":
		if c.err = refusal.ErrOwnerEnded; engine.Text(value) == "" {
			c.err = fmt.Errorf("owner %s: %w", id, refusal.ErrNotFound)
		}
		c.receipt.ID = c.id
	case "INVALID":
		c.receipt.ID = ""
		c.err = refusal.Invalid(id, "%s", engine.Text(value))
	case "BROKEN":
		c.err = engine.Broken(words[2:])
	default:
		c.err = engine.Unexpected("answer to enqueue", words)
	}
	return false
}

// batcher sends concurrent enqueues of one process in shared calls. While a call is under way, it
// collects the next tasks. It has no timer, so that a single task is not delayed. The goroutine that
// makes the calls ends when no task waits.
type batcher struct {
	mu      sync.Mutex
	waiting []*submission
	calls   int        // under way
	idle    []*sending // carriers for later calls
}

// submission is one task to enqueue.
type submission struct {
	task     *Task
	id       string
	receipt  Receipt
	err      error
	mayLeave bool          // its caller's context can end
	in       *sending      // the call that carries it, unless a caller of the call cannot give up
	done     chan struct{} // closed when receipt and err are final
}

// sending is the shared context of a call whose callers can all give up. It is reused for later
// calls until it is cancelled, because a new context for each call would be a sixth of the memory of
// an enqueue.
type sending struct {
	callers int // that still wait
	ctx     context.Context
	stop    context.CancelCauseFunc
}

// steady carries the calls that no caller can end, because the context of a caller never ends.
var steady = &sending{ctx: context.Background()}

// errNobodyWaits cancels a call when all its callers have given up.
var errNobodyWaits = errors.New("nobody waits for the call")

// add adds a submission, and starts a goroutine that makes calls if one is needed. A call does not
// end with the context of one of its submissions, because it carries the others too. It ends when
// the contexts of all have ended.
func (b *batcher) add(s *submission, call func(context.Context, []*submission)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, s)
	// A second call starts when eight tasks wait, so that Redis works while the reply to the
	// first call is read. (Measured with 16 goroutines: four tasks give a quarter fewer
	// enqueues a second; twelve and more give no more.)
	if b.calls == 2 || b.calls == 1 && len(b.waiting) < 8 {
		return
	}
	b.calls++
	go func() {
		for carrier, batch := b.next(); len(batch) > 0; carrier, batch = b.next() {
			call(carrier.ctx, batch)
			b.end(carrier, batch)
			for _, s := range batch {
				close(s.done)
			}
			// The callers that have their receipts run first, so their next tasks are in the next batch.
			runtime.Gosched()
		}
	}()
}

// next takes the submissions of the next call from the list. It also returns the context for the call:
// steady, an idle one, or a new one. If there are no submissions, the goroutine that called it is no
// longer counted in calls, and must end.
func (b *batcher) next() (*sending, []*submission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var call *sending
	n, size := 0, 0
	for ; n < len(b.waiting) && n < engine.MaxTasks; n++ {
		s := b.waiting[n]
		if size += s.task.size(); n > 0 && size > maxCall {
			break
		}
		if !s.mayLeave {
			call = steady
		}
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	last := len(b.idle) - 1
	switch {
	case n == 0:
		b.calls--
		return nil, nil
	case call == steady:
		return call, batch
	case last >= 0:
		call, b.idle = b.idle[last], b.idle[:last]
	default:
		call = &sending{}
		call.ctx, call.stop = context.WithCancelCause(context.Background())
	}
	call.callers = n
	for _, s := range batch {
		s.in = call
	}
	return call, batch
}

// fail sets the error of the submissions that were not sent because an earlier call failed. They
// were certainly not stored, even if that call failed with ErrUnknown.
func (b *batcher) fail(err error) {
	for _, s := range b.waiting {
		s.err = fmt.Errorf("%w: not sent, since an earlier call of the list failed: %v", refusal.ErrUnavailable, err)
	}
}

// end returns the context of a completed call to the idle ones, unless it was cancelled. It first
// detaches the submissions, so that a caller that gives up late does not cancel a later call.
func (b *batcher) end(call *sending, batch []*submission) {
	if call == steady {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range batch {
		s.in = nil
	}
	if call.ctx.Err() == nil {
		b.idle = append(b.idle, call)
	}
}

// leave is called when the caller of a submission gives up. If the submission is not in a call yet,
// leave removes it and returns true. Otherwise leave ends the call if no other caller waits for it.
func (b *batcher) leave(s *submission) (withdrawn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, waiting := range b.waiting {
		if waiting == s {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			return true
		}
	}
	if s.in != nil {
		if s.in.callers--; s.in.callers == 0 {
			s.in.stop(errNobodyWaits)
		}
	}
	return false
}

// shapes collects the tasks of one call. Tasks that differ only in id and payload share a shape,
// which is sent and checked once (lua/task/enqueue.lua). A child and a root task never share a
// shape, because their checks differ.
type shapes struct {
	call  string  // id of the call, so that a repeat recognizes the tasks that it created; "" if all ids are generated
	tasks []*Task // one task of each shape
	rows  []any   // shape, id, payload of each task
}

func (s *shapes) add(t *Task, id string) {
	n := slices.IndexFunc(s.tasks, func(o *Task) bool {
		return t.sameShape(o) && t.fixed() == o.fixed() && names.OwnerOf(t.ID) == "" == (names.OwnerOf(o.ID) == "")
	})
	if n < 0 {
		n = len(s.tasks)
		s.tasks = append(s.tasks, t)
	}
	s.rows = append(s.rows, n+1, id, t.Payload)
}

// args appends the shapes and the rows to the arguments of a call.
func (s *shapes) args(args []any) []any {
	args = append(args, len(s.tasks))
	for _, t := range s.tasks {
		if s.call != "" && t.fixed() {
			args = t.fields(args, "enqueued_by", s.call)
			continue
		}
		args = t.fields(args)
	}
	return append(args, s.rows...)
}

// AppendTasks appends tasks, each with its ID, to the arguments of a call that creates them. It is for
// the other packages of this module.
func AppendTasks(args []any, tasks []Task) []any {
	var s shapes
	for i := range tasks {
		s.add(&tasks[i], tasks[i].ID)
	}
	return s.args(args)
}

// ReadRefusal reads a reply that refuses a task. It is for the other packages of this module.
func ReadRefusal(task *Task, reply any) error {
	c := submission{task: task}
	c.readReply(reply)
	return c.err
}

// sameShape reports whether two tasks differ at most in id, name and payload. A test checks that it
// compares all other fields of Task, because a field that is not compared would be lost.
func (t *Task) sameShape(o *Task) bool {
	return t.Kind == o.Kind && t.Queue == o.Queue && t.Timeout == o.Timeout && t.Priority == o.Priority &&
		t.Deadline.Equal(o.Deadline) && t.DefaultTimeout == o.DefaultTimeout && t.Budget == o.Budget &&
		t.OnDeadline == o.OnDeadline && t.QueueTimeout == o.QueueTimeout && t.AttemptTimeout == o.AttemptTimeout &&
		t.OnTimeout == o.OnTimeout && t.WarnAt == o.WarnAt && t.CancelGrace == o.CancelGrace && t.TimeoutGrace == o.TimeoutGrace &&
		t.MaxRetries == o.MaxRetries && t.Backoff == o.Backoff && t.Retry == o.Retry && t.ResultType == o.ResultType && t.Hooks == o.Hooks &&
		t.Promise == o.Promise && t.Timer == o.Timer && t.Delay == o.Delay && t.StartAt.Equal(o.StartAt) &&
		t.Retention == o.Retention && t.IdempotencyKey == o.IdempotencyKey && t.IdempotencyScope == o.IdempotencyScope &&
		t.IdempotencyWindow == o.IdempotencyWindow && t.RetryOf == o.RetryOf && t.Node == o.Node && maps.Equal(t.Headers, o.Headers)
}
