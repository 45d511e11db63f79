package spans

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Send starts the span of the enqueue of one task. It returns the headers that the task is stored with: they carry
// the context of the span, unless they carry one already. most is the greatest size of headers.
func (t *Tracer) Send(ctx context.Context, task Task, most int) (headers map[string]string, _ *Span) {
	if t == nil {
		return task.Headers, nil
	}
	earlier := retried(ctx)
	if t.config.Parent && !trace.SpanContextFromContext(ctx).IsValid() {
		sender := t.senderOf(task.Headers)
		if !sender.IsValid() && earlier != nil {
			sender = t.senderOf(earlier.Headers)
		}
		if sender.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, sender)
		}
	}
	attributes, links := t.sentAgain(earlier)
	ctx, span := t.start(ctx, operation{"send", "send", task.Queue, trace.SpanKindProducer}, append(about(&task), attributes...),
		trace.WithLinks(append(links, t.links([]Task{task})...)...))
	return with(task.Headers, t.contextOf(ctx), most), span
}

// Sent ends the span of the enqueue of one task, which was given this id.
func (s *Span) Sent(id string, err error) {
	if s == nil {
		return
	}
	if id != "" {
		s.span.SetAttributes(about(&Task{ID: id})[1:]...)
	}
	s.End(err)
}

// Batch holds the spans of the enqueue of several tasks.
type Batch struct {
	*Span
	caller  context.Context // its span is the parent of the spans of the tasks
	context map[string]string
	creates []*Span
}

// SendAll starts the spans of the enqueue of several tasks.
func (t *Tracer) SendAll(ctx context.Context, tasks []Task) *Batch {
	if t == nil {
		return nil
	}
	b := &Batch{caller: ctx}
	o := operation{"send", "send", queueOf(tasks), trace.SpanKindProducer}
	if t.config.EachInBatch {
		o.kind = trace.SpanKindClient // the spans of the tasks are the producers
	}
	ctx, b.Span = t.start(ctx, o, []attribute.KeyValue{attribute.Int("messaging.batch.message_count", len(tasks))}, trace.WithLinks(t.links(tasks)...))
	b.context = t.contextOf(ctx)
	return b
}

// Headers returns the headers that a task of the batch is stored with. Without EachInBatch all of them carry the context
// of the batch, so tasks whose headers are the same otherwise are still the same.
func (b *Batch) Headers(task Task, most int) map[string]string {
	if b == nil {
		return task.Headers
	}
	t := b.tracer
	if !t.config.EachInBatch {
		return with(task.Headers, b.context, most)
	}
	ctx, create := t.start(b.caller, operation{"create", "create", task.Queue, trace.SpanKindProducer}, about(&task), trace.WithLinks(t.links([]Task{task})...))
	b.creates = append(b.creates, create)
	if len(b.creates) <= maxLinks {
		b.span.AddLink(trace.Link{SpanContext: create.span.SpanContext()})
	}
	return with(task.Headers, t.contextOf(ctx), most)
}

// Sent ends the span of a task, by its index in the batch.
func (b *Batch) Sent(place int, id string, err error) {
	if b != nil && place < len(b.creates) {
		b.creates[place].Sent(id, err)
		b.creates[place] = nil
	}
}

// End ends the batch's span, and the spans of its tasks that have not ended.
func (b *Batch) End(err error) {
	if b == nil {
		return
	}
	for _, create := range b.creates {
		create.End(err)
	}
	b.Span.End(err)
}
