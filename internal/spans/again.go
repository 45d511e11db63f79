package spans

import (
	"context"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Again prepares the enqueue of a task that runs an ended one again. headers are those of the new task. It returns a context
// with which Send links the span of the new task to the span that sent the earlier one. It also returns headers without the
// trace context of the earlier task, so that the attempts of the new task are linked to the span that sent it again.
func (t *Tracer) Again(ctx context.Context, earlier Task, headers map[string]string) (context.Context, map[string]string) {
	if t == nil {
		return ctx, headers
	}
	task := earlier // a copy, so that the parameter stays off the heap without a tracer
	ctx = context.WithValue(ctx, againKey{}, &task)
	if carrier(headers).Get(traceparent) != carrier(earlier.Headers).Get(traceparent) {
		return ctx, headers // the caller has set another one
	}
	headers = maps.Clone(headers)
	maps.DeleteFunc(headers, func(name, _ string) bool {
		return strings.EqualFold(name, traceparent) || strings.EqualFold(name, tracestate)
	})
	return ctx, headers
}

type againKey struct{}

// retried returns the task that is run again by an enqueue with this context, or nil.
func retried(ctx context.Context) *Task {
	earlier, _ := ctx.Value(againKey{}).(*Task)
	return earlier
}

// sentAgain returns the attribute and the link from an enqueue's span to the earlier task.
func (t *Tracer) sentAgain(earlier *Task) ([]attribute.KeyValue, []trace.Link) {
	if earlier == nil {
		return nil, nil
	}
	return []attribute.KeyValue{attribute.String("curfew.task.retry_of", earlier.ID)}, t.links([]Task{*earlier})
}
