package spans

import (
	"context"
	"maps"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
	baggage     = "baggage"
)

// maxCarried is the size that the headers of a task have at most after a context was added to them. With larger
// headers the task carries no context: it must not be refused because it is traced, nor must a worker that
// hands its headers to a command or in a request.
const maxCarried = 8 << 10

// maxRead is the longest header that is parsed.
const maxRead = 8 << 10

// carrier reads headers whatever the case of their names. A header that is there twice, in different
// cases, has no value, and neither has a very long one.
type carrier map[string]string

// Get returns the value of a header.
func (c carrier) Get(name string) (value string) {
	present := false
	for key, v := range c {
		if len(key) != len(name) || !strings.EqualFold(key, name) {
			continue
		}
		if present || len(v) > maxRead {
			return ""
		}
		value, present = v, true
	}
	return value
}

// Set sets a header.
func (c carrier) Set(name, value string) { c[name] = value }

// Keys returns the names of the headers.
func (c carrier) Keys() (names []string) {
	for name := range c {
		names = append(names, name)
	}
	return names
}

// carries reports whether headers have a context already, of whatever form.
func carries(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, traceparent) || strings.EqualFold(name, tracestate) {
			return true
		}
	}
	return false
}

// senderOf returns the context that the headers of a task carry. It is not valid if they carry none, or a
// malformed one.
func (t *Tracer) senderOf(headers map[string]string) trace.SpanContext {
	if len(headers) == 0 {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier(headers)))
}

// PassOn returns headers of a task to which the trace context of ctx was added, as Send adds it. It is for a program that makes no spans,
// so that a traced worker continues the trace of who made a request. most is the greatest size of headers.
func PassOn(ctx context.Context, headers map[string]string, most int) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return headers
	}
	c := carrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return with(headers, c, most)
}

// contextOf returns the headers that carry the context of ctx.
func (t *Tracer) contextOf(ctx context.Context) map[string]string {
	c := carrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	if t.config.Baggage {
		propagation.Baggage{}.Inject(ctx, c)
	}
	return c
}

// received returns ctx with the baggage that the headers of a task carry, if that is wanted.
func (t *Tracer) received(ctx context.Context, headers map[string]string) context.Context {
	if !t.config.Baggage || len(headers) == 0 {
		return ctx
	}
	return propagation.Baggage{}.Extract(ctx, carrier(headers))
}

// with returns headers to which a context was added, if they carry none and the result is not too large. A context that
// does not fit is left out from its end: baggage first, then tracestate.
func with(headers, context map[string]string, most int) map[string]string {
	if carries(headers) {
		return headers
	}
	size := sizeOf(headers)
	most = min(most, maxCarried)
	if size+sizeOf(context) <= most && len(headers) == 0 {
		return context // shared by the tasks of a batch
	}
	merged := headers
	for _, name := range []string{traceparent, tracestate, baggage} {
		value := context[name]
		if _, exists := headers[name]; exists || value == "" {
			continue
		}
		if size += len(name) + len(value); size > most {
			break
		}
		if len(merged) == len(headers) {
			if merged = maps.Clone(headers); merged == nil {
				merged = map[string]string{}
			}
		}
		merged[name] = value
	}
	return merged
}

func sizeOf(headers map[string]string) (size int) {
	for name, value := range headers {
		size += len(name) + len(value)
	}
	return size
}
