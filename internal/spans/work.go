package spans

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Receive makes the span of a claim, which began at start. With Config.Parent each task has a span in its own trace.
func (t *Tracer) Receive(ctx context.Context, start time.Time, tasks []Task) {
	if t == nil || len(tasks) == 0 {
		return
	}
	began := trace.WithTimestamp(start)
	if t.config.Parent {
		for i := range tasks {
			task := &tasks[i]
			ctx, options := t.follow(ctx, task)
			_, span := t.start(ctx, operation{"receive", "receive", task.Queue, trace.SpanKindClient}, about(task), append(options, began)...)
			span.End(nil)
		}
		return
	}
	attributes := []attribute.KeyValue{attribute.Int("messaging.batch.message_count", len(tasks))}
	_, span := t.start(ctx, operation{"receive", "receive", queueOf(tasks), trace.SpanKindClient}, attributes, began, trace.WithNewRoot(), trace.WithLinks(t.links(tasks)...))
	span.End(nil)
}

// Attempt is the part of an attempt that appears in its span.
type Attempt struct {
	Number   int
	Deadline time.Time // zero: none
}

// Process starts the span of an attempt. It returns the context for the handler: tasks that the handler enqueues with
// this context are sent by this span.
func (t *Tracer) Process(ctx context.Context, task Task, a Attempt) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	attributes := append(about(&task), attribute.Int("curfew.task.attempt", a.Number))
	if !a.Deadline.IsZero() {
		attributes = append(attributes, attribute.String("curfew.task.deadline", a.Deadline.UTC().Format(time.RFC3339Nano)))
	}
	ctx, options := t.follow(t.received(ctx, task.Headers), &task)
	ctx, span := t.start(ctx, operation{"process", "process", task.Queue, trace.SpanKindConsumer}, attributes, options...)
	return context.WithValue(ctx, processKey{}, span), span
}

type processKey struct{}

// ProcessOf returns the span of the attempt that ctx belongs to, or nil. It is not a span that the handler has
// started within it.
func ProcessOf(ctx context.Context) *Span {
	span, _ := ctx.Value(processKey{}).(*Span)
	return span
}

// Carried returns the headers that carry the context of ctx, for a program that an attempt starts or calls. They are nil if
// ctx does not belong to an attempt that is traced.
func Carried(ctx context.Context) map[string]string {
	if s := ProcessOf(ctx); s != nil {
		return s.tracer.contextOf(ctx)
	}
	return nil
}

// Processed ends the span of an attempt. typ is the type of the error, "" for none.
func (s *Span) Processed(typ, description string) {
	if s == nil {
		return
	}
	if typ != "" {
		s.fail(typ, description)
	}
	s.span.End()
}

// Agent marks the span of an attempt as the span of an agent.
func (s *Span) Agent(kind string) {
	if s != nil {
		s.span.SetName("process " + kind)
	}
}

// Waited records that the agent continues after a wait of this mode, and links its span to the senders of the members
// that have ended.
func (s *Span) Waited(mode string, members []Task) {
	if s == nil || !s.span.IsRecording() {
		return
	}
	s.span.SetAttributes(attribute.String("curfew.wait.mode", mode))
	for _, link := range s.tracer.links(members) {
		s.span.AddLink(link)
	}
}

// Settle makes the span of the report of an attempt, which began at start: ack if it completed, otherwise nack. It is a
// child of the attempt's span s.
func (s *Span) Settle(start time.Time, task Task, completed bool, err error) {
	if s == nil {
		return
	}
	name := "nack"
	if completed {
		name = "ack"
	}
	ctx := trace.ContextWithSpanContext(context.Background(), s.span.SpanContext())
	_, span := s.tracer.start(ctx, operation{name, "settle", task.Queue, trace.SpanKindClient}, about(&task), trace.WithTimestamp(start))
	span.End(err)
}

// Cancel starts the span of a cancellation.
func (t *Tracer) Cancel(ctx context.Context, n int) *Span {
	if t == nil {
		return nil
	}
	_, span := t.start(ctx, operation{"cancel", "settle", "", trace.SpanKindClient}, []attribute.KeyValue{attribute.Int("messaging.batch.message_count", n)})
	return span
}

// Recording reports whether the span is sampled. If not, its attributes need not be read.
func (s *Span) Recording() bool { return s != nil && s.span.IsRecording() }

// Cancelled adds the cancelled tasks to the span.
func (s *Span) Cancelled(tasks []Task) {
	if !s.Recording() || len(tasks) == 0 {
		return
	}
	if queue := queueOf(tasks); queue != "" {
		s.span.SetName("cancel " + queue)
		s.span.SetAttributes(attribute.String("messaging.destination.name", queue))
	}
	if len(tasks) == 1 {
		s.span.SetAttributes(about(&tasks[0])...)
	}
	for _, link := range s.tracer.links(tasks) {
		s.span.AddLink(link)
	}
}

// Expiry is a timeout of a task.
type Expiry struct {
	Type     string        // of the limit that passed
	Deadline time.Time     // the instant at which the time was up
	Lag      time.Duration // how long after that the end was written
}

// Expire makes the span of the end of a task by a timeout. A task has one, whoever ended it.
func (t *Tracer) Expire(ctx context.Context, task Task, e Expiry) {
	if t == nil {
		return
	}
	attributes := append(about(&task), attribute.String("curfew.timeout.type", e.Type), attribute.Int64("curfew.detection_lag_ms", e.Lag.Milliseconds()),
		attribute.String("curfew.task.deadline", e.Deadline.UTC().Format(time.RFC3339Nano)))
	ctx, options := t.follow(ctx, &task)
	_, span := t.start(ctx, operation{"expire", "settle", task.Queue, trace.SpanKindClient}, attributes, options...)
	span.fail("timeout", "the time of the task was up")
	span.span.End()
}
