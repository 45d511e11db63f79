package spans

import (
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// methods are the methods of HTTP that a span names. Any other one is _OTHER, so that a client cannot make names.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
	http.MethodConnect, http.MethodTrace}

// Serve starts the span of an HTTP request to a route, such as /tasks/{id}. Its parent is the context that the headers of the
// request carry. The context of the request that Serve returns has the span. If the program has begun a span for the request, that
// one counts, and Serve starts none.
func (t *Tracer) Serve(r *http.Request, route string) (*http.Request, *Span) {
	if t == nil || trace.SpanContextFromContext(r.Context()).IsValid() {
		return r, nil
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	name, method := r.Method, r.Method
	if !slices.Contains(methods, method) {
		name, method = "HTTP", "_OTHER"
	}
	ctx, span := t.tracer.Start(ctx, name+" "+route, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route)))
	return r.WithContext(ctx), &Span{span: span, tracer: t}
}

// Served ends the span of an HTTP request, which was answered with this status. A status of 500 or more is a failure of the server.
func (s *Span) Served(status int) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		s.fail(strconv.Itoa(status), "")
	}
	s.span.End()
}
