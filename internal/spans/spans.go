// Package spans makes the OpenTelemetry spans of Curfew, and carries their contexts in the headers of
// tasks. It uses the OpenTelemetry API only: the program chooses the SDK and the exporter.
//
// All methods of a nil [Tracer], [Span] and [Batch] do nothing, so a program without tracing pays for the
// test of a pointer.
package spans

import (
	"context"
	"errors"
	"net"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/internal/clip"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Config selects the spans of a Tracer. docs/how-to/trace.md describes them.
type Config struct {
	Provider    trace.TracerProvider
	Parent      bool   // a task continues the trace of its sender; otherwise it has a trace of its own, with a link
	EachInBatch bool   // each task of a batch gets a span of its own
	Baggage     bool   // the headers carry the baggage of the sender too
	Server      string // host and port of Redis; "" if there are several
}

// Tracer makes spans.
type Tracer struct {
	tracer trace.Tracer
	config Config
	common []attribute.KeyValue // of all spans
}

// New returns a tracer, or nil if the config has no provider.
func New(c Config) *Tracer {
	if c.Provider == nil {
		return nil
	}
	t := &Tracer{config: c, common: []attribute.KeyValue{attribute.String("messaging.system", "curfew")},
		tracer: c.Provider.Tracer("github.com/curfew-dev/curfew", trace.WithSchemaURL("https://opentelemetry.io/schemas/1.43.0"))}
	if host, port, err := net.SplitHostPort(c.Server); err == nil {
		t.common = append(t.common, attribute.String("server.address", host))
		if n, err := strconv.Atoi(port); err == nil {
			t.common = append(t.common, attribute.Int("server.port", n))
		}
	}
	return t
}

// Task is the part of a task that appears in spans.
type Task struct {
	ID, Kind, Queue string
	Headers         map[string]string
}

// operation is the subject of a span: its name and kind, and the attributes that all spans have.
type operation struct {
	name, typ string // as in messaging.operation.name and messaging.operation.type
	queue     string // "": several queues, or unknown
	kind      trace.SpanKind
}

// start starts the span of an operation.
func (t *Tracer) start(ctx context.Context, o operation, more []attribute.KeyValue, options ...trace.SpanStartOption) (context.Context, *Span) {
	attributes := append(make([]attribute.KeyValue, 0, len(t.common)+3+len(more)), t.common...)
	attributes = append(attributes, attribute.String("messaging.operation.name", o.name), attribute.String("messaging.operation.type", o.typ))
	name := o.name
	if o.queue != "" {
		name += " " + o.queue
		attributes = append(attributes, attribute.String("messaging.destination.name", o.queue))
	}
	options = append(options, trace.WithSpanKind(o.kind), trace.WithAttributes(append(attributes, more...)...))
	ctx, span := t.tracer.Start(ctx, name, options...)
	return ctx, &Span{span: span, tracer: t}
}

// follow returns the context and the options of a span that is caused by a task with these headers. In a
// trace per task it is a new root with a link to the sender. With Config.Parent it is a child of the sender.
func (t *Tracer) follow(ctx context.Context, task *Task) (context.Context, []trace.SpanStartOption) {
	sender := t.senderOf(task.Headers)
	switch {
	case sender.IsValid() && t.config.Parent:
		return trace.ContextWithRemoteSpanContext(ctx, sender), nil
	case sender.IsValid():
		return ctx, []trace.SpanStartOption{trace.WithNewRoot(), trace.WithLinks(linkTo(sender, task))}
	}
	return ctx, []trace.SpanStartOption{trace.WithNewRoot()}
}

// maxLinks is how many links a span gets at most. Most SDKs keep 128.
const maxLinks = 100

// linkTo returns a link to the sender of a task, which names the task.
func linkTo(from trace.SpanContext, task *Task) trace.Link {
	return trace.Link{SpanContext: from, Attributes: []attribute.KeyValue{attribute.String("messaging.message.id", task.ID)}}
}

// links returns links to the senders of tasks.
func (t *Tracer) links(tasks []Task) (links []trace.Link) {
	for i := range tasks {
		if len(links) == maxLinks {
			break
		}
		if sender := t.senderOf(tasks[i].Headers); sender.IsValid() {
			links = append(links, linkTo(sender, &tasks[i]))
		}
	}
	return links
}

// about returns the attributes of a task.
func about(task *Task) []attribute.KeyValue {
	list := append(make([]attribute.KeyValue, 0, 8), attribute.String("curfew.task.kind", task.Kind))
	if task.ID != "" {
		list = append(list, attribute.String("messaging.message.id", task.ID), attribute.String("messaging.message.conversation_id", names.RootOf(task.ID)))
	}
	return list
}

// queueOf returns the queue of all these tasks, or "" if they are in several.
func queueOf(tasks []Task) string {
	for i := range tasks {
		if tasks[i].Queue != tasks[0].Queue {
			return ""
		}
	}
	if len(tasks) == 0 {
		return ""
	}
	return tasks[0].Queue
}

// Span is a span that has been started.
type Span struct {
	span   trace.Span
	tracer *Tracer
}

// End ends the span, with the error of the operation or nil.
func (s *Span) End(err error, options ...trace.SpanEndOption) {
	if s == nil {
		return
	}
	if err != nil {
		s.fail(errorType(err), err.Error())
	}
	s.span.End(options...)
}

// maxDescription is how many bytes of an error a span has.
const maxDescription = 256

// fail marks the span as failed.
func (s *Span) fail(typ, description string) {
	s.span.SetStatus(codes.Error, clip.Text(description, maxDescription))
	s.span.SetAttributes(attribute.String("error.type", typ))
}

// errorTypes has a word for each error that a caller can act on.
var errorTypes = []struct {
	err  error
	word string
}{
	{refusal.ErrInvalid, "invalid"}, {refusal.ErrConflict, "conflict"}, {refusal.ErrNotFound, "not_found"}, {refusal.ErrOwnerEnded, "owner_ended"},
	{refusal.ErrNotOwner, "not_owner"}, {refusal.ErrNotHeld, "not_held"}, {refusal.ErrStopping, "stopping"}, {refusal.ErrDiverged, "diverged"},
	{refusal.ErrFull, "full"}, {refusal.ErrQueueFull, "queue_full"}, {refusal.ErrUnknown, "unknown"}, {refusal.ErrUnavailable, "unavailable"},
	{context.Canceled, "canceled"}, {context.DeadlineExceeded, "timeout"},
}

func errorType(err error) string {
	for _, e := range errorTypes {
		if errors.Is(err, e.err) {
			return e.word
		}
	}
	return "_OTHER"
}
