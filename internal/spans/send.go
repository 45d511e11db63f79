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
	earlier := again(ctx)
	if t.config.Parent && !trace.SpanContextFromContext(ctx).IsValid() {
		from := t.senderOf(task.Headers)
		if !from.IsValid() && earlier != nil {
			from = t.senderOf(earlier.Headers)
		}
		if from.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, from)
		}
	}
	more, links := t.sentAgain(earlier)
	ctx, span := t.start(ctx, operation{"send", "send", task.Queue, trace.SpanKindProducer}, append(about(&task), more...),
		trace.WithLinks(append(links, t.links([]Task{task})...)...))
	return with(task.Headers, t.contextOf(ctx), most), span
}

// Sent ends the span of an enqueue of one task, which got this id.
func (s *Span) Sent(id string, err error) {
	if s == nil {
		return
	}
	if id != "" {
		s.span.SetAttributes(about(&Task{ID: id})[1:]...)
	}
	s.End(err)
}

// Batch is the spans of an enqueue of several tasks.
type Batch struct {
	*Span
	caller  context.Context // its span is the parent of the spans of the tasks
	context map[string]string
	creates []*Span
}

// SendAll starts the span of the enqueue of several tasks.
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

// Sent ends the span of one task of the batch, by its place.
func (b *Batch) Sent(place int, id string, err error) {
	if b != nil && place < len(b.creates) {
		b.creates[place].Sent(id, err)
		b.creates[place] = nil
	}
}

// End ends the span of the batch, and those of its tasks that have not ended.
func (b *Batch) End(err error) {
	if b == nil {
		return
	}
	for _, create := range b.creates {
		create.End(err)
	}
	b.Span.End(err)
}
