package queue

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/internal/spans"
)

// Tracing makes OpenTelemetry spans of the calls that change tasks. Each task carries the context of
// its sender in its headers traceparent and tracestate, in the format of W3C Trace Context. If the
// task already has such headers, they are not changed. docs/how-to/trace.md describes the spans.
type Tracing struct {
	// Provider makes the tracer. Nil: no span is made, and no header is added.
	Provider trace.TracerProvider
	// Parent makes one trace of a task, its sender, its attempts and its children. By default each
	// attempt has a trace of its own, with a link to the sender, because a task can run long after
	// it was sent.
	Parent bool
	// EachInBatch makes a span for each task of EnqueueAll. By default the tasks of a call share one
	// span. Then they also share their headers, so that similar tasks are sent in a compact form.
	EachInBatch bool
	// Baggage sends the sender's baggage to handlers too, in the header baggage. It is off by
	// default, because baggage can contain anything that the program received from others, and is
	// stored with the task.
	Baggage bool
}

func (t Tracing) tracer(rdb redis.UniversalClient) *spans.Tracer {
	c := spans.Config{Provider: t.Provider, Parent: t.Parent, EachInBatch: t.EachInBatch, Baggage: t.Baggage}
	if client, ok := rdb.(*redis.Client); ok {
		c.Server = client.Options().Addr
	}
	return spans.New(c)
}

// traced returns the attributes of a task for its spans.
func (t *Task) traced() spans.Task {
	queue := t.Queue
	if queue == "" {
		queue = "default"
	}
	return spans.Task{ID: t.ID, Kind: t.Kind, Queue: queue, Headers: t.Headers}
}

// carriesContext reports whether the headers of a task should carry the context of its sender. A
// timer does not need it, because no program runs it. Nor does a signal: the agent schedules it, but
// another program sends it.
func (t *Task) carriesContext() bool {
	signal := t.Promise && names.OwnerOf(t.ID) != "" && strings.HasPrefix(t.ID[strings.LastIndexByte(t.ID, '.')+1:], "s-")
	return !t.Timer && !signal
}

// traceSend starts the span of an enqueue of one task, and adds its context to the headers of the task.
func (q *Queue) traceSend(ctx context.Context, t *Task) *spans.Span {
	if q.tracer == nil {
		return nil
	}
	headers, span := q.tracer.Send(ctx, t.traced(), q.config.MaxBytes)
	if t.carriesContext() {
		t.Headers = headers
	}
	return span
}

// TraceSendAll starts the spans of an enqueue of several tasks. It returns copies of the tasks that
// carry their contexts. It is for the other packages of this module.
func (q *Queue) TraceSendAll(ctx context.Context, tasks []Task) ([]Task, *spans.Batch) {
	if q.tracer == nil || len(tasks) == 0 {
		return tasks, nil
	}
	about := make([]spans.Task, len(tasks))
	for i := range tasks {
		about[i] = tasks[i].traced()
	}
	batch := q.tracer.SendAll(ctx, about)
	tasks = slices.Clone(tasks)
	for i := range tasks {
		headers := batch.Headers(about[i], q.config.MaxBytes)
		if tasks[i].carriesContext() {
			tasks[i].Headers = headers
		}
	}
	return tasks, batch
}

// maxTraced bounds the tasks that are read for the span of a call that knows only their ids.
const maxTraced = 100

// traceCancel ends the span of a cancellation. It reads the tasks first, for their queue and their senders.
func (q *Queue) traceCancel(ctx context.Context, span *spans.Span, ids []string, err error) {
	if span.Recording() {
		ids = ids[:min(len(ids), maxTraced)]
		records, _ := q.GetAll(ctx, ids) // after an error the span has fewer attributes
		span.Cancelled(traced(records))
	}
	span.End(err)
}

// traced returns the attributes of records for their spans. It skips nil records.
func traced(records []*Record) (tasks []spans.Task) {
	for _, r := range records {
		if r != nil {
			tasks = append(tasks, spans.Task{ID: r.ID, Kind: r.Kind, Queue: r.Queue, Headers: r.Headers})
		}
	}
	return tasks
}

// readFor bounds the read of tasks for their spans, because it delays the call that has ended them.
const readFor = time.Second

// traceExpired makes a span for each task that a call has ended because its time was up. It reads
// the tasks to link the spans to the tasks' senders.
func (q *Queue) traceExpired(ctx context.Context, report engine.Report) {
	if len(report.TimedOut) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readFor)
	defer cancel()
	ids := make([]string, 0, maxTraced)
	for _, t := range report.TimedOut[:min(len(report.TimedOut), maxTraced)] {
		ids = append(ids, t.ID)
	}
	headers := map[string]map[string]string{}
	records, _ := q.GetAll(ctx, ids) // without them the spans have no links
	for _, r := range traced(records) {
		headers[r.ID] = r.Headers
	}
	for _, t := range report.TimedOut {
		q.tracer.Expire(ctx, spans.Task{ID: t.ID, Kind: t.Kind, Queue: t.Queue, Headers: headers[t.ID]}, spans.Expiry{Type: t.Type, Deadline: t.Due, Lag: t.Lag})
	}
}
