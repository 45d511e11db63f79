package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const (
	callerTrace = "0123456789abcdef0123456789abcdef"
	callerSpan  = "0123456789abcdef"
)

// tracedStage makes a stage whose server and queue make spans, which the test reads.
func tracedStage(t *testing.T, config Config, tracing queue.Tracing) (*stage, func(name string) []tracetest.SpanStub) {
	t.Helper()
	exported := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exported))
	tracing.Provider, config.Traces = provider, provider
	s := newStage(t, config)
	q, err := queue.Open(t.Context(), redistest.Shared(t).Client(t), queue.Config{Namespace: s.q.Namespace(), Tracing: tracing, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.q = q
	s.server.spaces[q.Namespace()].opened = q
	return s, func(name string) (found []tracetest.SpanStub) {
		for _, span := range exported.GetSpans() {
			if span.Name == name || name == "" {
				found = append(found, span)
			}
		}
		return found
	}
}

func attributeOf(span tracetest.SpanStub, name string) string {
	for _, a := range span.Attributes {
		if a.Key == attribute.Key(name) {
			return a.Value.String()
		}
	}
	return ""
}

// A request with a traceparent leads to the server's span, the send of the task, its attempt, and its acknowledgement.
func TestARequestIsTracedToTheAttempt(t *testing.T) {
	for _, parent := range []bool{false, true} {
		s, named := tracedStage(t, Config{}, queue.Tracing{Parent: parent})
		answer := s.do("POST", "tasks", `{"kind":"render","payload":{"page":1}}`, func(r *http.Request) {
			r.Header.Set("traceparent", "00-"+callerTrace+"-"+callerSpan+"-01")
		})
		if answer.status != http.StatusCreated {
			t.Fatal(answer)
		}
		w := worker.New(s.q, worker.Config{Logger: slog.New(slog.DiscardHandler)})
		w.HandleRaw("render", func(context.Context, []byte) ([]byte, error) { return nil, nil })
		if ran, err := w.RunOne(t.Context()); ran == nil || err != nil {
			t.Fatal(ran, err)
		}
		var chain []tracetest.SpanStub
		for _, name := range []string{"POST /api/v1/{namespace}/tasks", "send default", "process default", "ack default"} {
			found := named(name)
			if len(found) != 1 {
				t.Fatalf("%d spans are named %q, want 1", len(found), name)
			}
			chain = append(chain, found[0])
		}
		server, send, process, ack := chain[0], chain[1], chain[2], chain[3]
		if server.Parent.SpanID().String() != callerSpan || server.Parent.TraceID().String() != callerTrace || server.SpanKind != trace.SpanKindServer ||
			server.SpanContext.TraceID().String() != callerTrace {
			t.Errorf("the span of the request is %v with the parent %v, want a server span in the trace of the caller", server.SpanKind, server.Parent)
		}
		for name, want := range map[string]string{"http.request.method": "POST", "http.route": "/api/v1/{namespace}/tasks", "http.response.status_code": "201", "messaging.system": ""} {
			if got := attributeOf(server, name); got != want {
				t.Errorf("%s = %q, want %q", name, got, want)
			}
		}
		if send.Parent.SpanID() != server.SpanContext.SpanID() || ack.Parent.SpanID() != process.SpanContext.SpanID() {
			t.Error("the request is not the parent of the send, or the attempt not that of its acknowledgement")
		}
		if parent && process.Parent.SpanID() != send.SpanContext.SpanID() || !parent && (len(process.Links) != 1 || process.Links[0].SpanContext.SpanID() != send.SpanContext.SpanID()) {
			t.Errorf("with Parent %v the attempt has the parent %v and the links %v, want the send", parent, process.Parent, process.Links)
		}
	}
}

// Each request to a route has one span, which ends with the status that the client got.
func TestTheSpanOfARequestHasItsStatus(t *testing.T) {
	s, named := tracedStage(t, Config{MaxBody: 1000}, queue.Tracing{})
	id := s.do("POST", "tasks", `{"kind":"k"}`).text("id")
	for _, request := range []struct{ method, path, body, span string }{
		{"GET", "tasks/" + id, "", "GET /api/v1/{namespace}/tasks/{id}"},
		{"GET", "tasks/0-NOBODY", "", "GET /api/v1/{namespace}/tasks/{id}"},
		{"POST", "tasks", `{"kind":`, "POST /api/v1/{namespace}/tasks"},
		{"POST", "tasks", `"` + strings.Repeat("x", 2000) + `"`, "POST /api/v1/{namespace}/tasks"},
		{"PATCH", "tasks", "", "PATCH /api/v1/{namespace}/tasks"},
		{"BREW", "tasks", "", "HTTP /api/v1/{namespace}/tasks"},
		{"GET", "/api/v1/nothing/tasks", "", "GET /api/v1/{namespace}/tasks"},
	} {
		before := len(named(""))
		status := s.do(request.method, request.path, request.body, func(r *http.Request) { r.Header.Set("traceparent", "00-zz") }).status
		var served []tracetest.SpanStub
		for _, span := range named("")[before:] {
			if span.SpanKind == trace.SpanKindServer {
				served = append(served, span)
			}
		}
		if len(served) != 1 || served[0].Name != request.span || attributeOf(served[0], "http.response.status_code") != fmt.Sprint(status) ||
			served[0].Parent.IsValid() || served[0].Status.Code.String() != "Unset" {
			t.Errorf("%s %s is answered with %d, and has the server spans %+v, want one %q", request.method, request.path, status, served, request.span)
		}
	}
	before := len(named(""))
	s.do("GET", "/healthz", "")
	s.do("GET", "/nothing", "")
	if after := len(named("")); after != before {
		t.Errorf("%d spans were made of requests to no route of the API", after-before)
	}
}

func TestARequestThatPanicsHasAFailedSpan(t *testing.T) {
	s, named := tracedStage(t, Config{}, queue.Tracing{})
	s.server.mux.Handle("/broken/{namespace}", s.server.api("/broken/{namespace}", map[string]*route{"GET": {Method: "GET", Role: Read,
		Serve: func(*call) (any, error) { panic("no") }}}))
	if status := s.do("GET", "/broken/"+s.q.Namespace(), "").status; status != http.StatusInternalServerError {
		t.Errorf("the answer is %d, want 500", status)
	}
	spans := named("GET /broken/{namespace}")
	if len(spans) != 1 || spans[0].Status.Code.String() != "Error" || attributeOf(spans[0], "error.type") != "500" || attributeOf(spans[0], "http.response.status_code") != "500" {
		t.Errorf("the spans are %+v, want one that failed with 500", spans)
	}
}

// A program that mounts the server can have a span of its own for the request. A server without a provider makes none.
func TestARequestWithASpanGetsNoOther(t *testing.T) {
	s, named := tracedStage(t, Config{}, queue.Tracing{})
	ctx, own := s.server.config.Traces.Tracer("program").Start(t.Context(), "mine")
	answer := httptest.NewRecorder()
	request := httptest.NewRequest("POST", "http://localhost/api/v1/"+s.q.Namespace()+"/tasks", strings.NewReader(`{"kind":"k"}`)).WithContext(ctx)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("traceparent", "00-"+callerTrace+"-"+callerSpan+"-01")
	s.server.ServeHTTP(answer, request)
	own.End()
	sends := named("send default")
	if answer.Code != http.StatusCreated || len(sends) != 1 || sends[0].Parent.SpanID() != own.SpanContext().SpanID() || len(named("")) != 2 {
		t.Errorf("the answer is %d, and the sends are %v of %d spans, want one below the program's own, and no third", answer.Code, sends, len(named("")))
	}
}

// Neither the server nor its queue makes spans. The tasks of a request carry its traceparent all the same, so that a worker with tracing
// continues the trace. A task with a traceparent of its own keeps it, and a request without one adds none.
func TestATraceparentReachesAWorkerThroughAServerWithoutTracing(t *testing.T) {
	s := newStage(t, Config{})
	const traceparent, own = "00-" + callerTrace + "-" + callerSpan + "-01", "00-11111111111111111111111111111111-2222222222222222-01"
	traced := func(r *http.Request) {
		r.Header.Set("traceparent", traceparent)
		r.Header.Set("tracestate", "vendor=x")
	}
	headersOf := func(id string) map[string]string {
		t.Helper()
		record, err := s.q.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return record.Headers
	}
	expect := func(what, id string, want map[string]string) {
		t.Helper()
		if got := headersOf(id); !maps.Equal(got, want) {
			t.Errorf("%s has the headers %v, want %v", what, got, want)
		}
	}
	both := map[string]string{"traceparent": traceparent, "tracestate": "vendor=x"}
	agent := s.do("POST", "tasks", `{"kind":"k","timeout":"1h"}`, traced).text("id")
	expect("a task", agent, both)
	expect("a task without a trace", s.do("POST", "tasks", `{"kind":"k"}`).text("id"), nil)
	expect("a wrong traceparent", s.do("POST", "tasks", `{"kind":"k"}`, header("traceparent", "00-zz")).text("id"), nil)
	expect("a task with its own", s.do("POST", "tasks", `{"kind":"k","headers":{"traceparent":"`+own+`"}}`, traced).text("id"), map[string]string{"traceparent": own})
	s.want(200, "POST", "tasks/batch", `{"tasks":[{"kind":"k","id":"0-B1"},{"kind":"k","id":"0-B2","headers":{"a":"b"}}]}`, traced)
	expect("a task of a batch", "0-B1", both)
	expect("a task with headers", "0-B2", map[string]string{"traceparent": traceparent, "tracestate": "vendor=x", "a": "b"})
	s.want(200, "POST", "agents/"+agent+"/tasks", `{"tasks":[{"task_kind":"k","idempotency_key":"c"}]}`, traced)
	expect("a child", agent+".n-c", both)

	exported := tracetest.NewInMemoryExporter()
	q, err := queue.Open(t.Context(), redistest.Shared(t).Client(t), queue.Config{Namespace: s.q.Namespace(), Logger: slog.New(slog.DiscardHandler),
		Tracing: queue.Tracing{Provider: sdk.NewTracerProvider(sdk.WithSyncer(exported))}})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(q, worker.Config{Logger: slog.New(slog.DiscardHandler)})
	w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	if ran, err := w.RunOne(t.Context()); ran == nil || err != nil {
		t.Fatal(ran, err)
	}
	for _, span := range exported.GetSpans() {
		if span.Name == "process default" && (len(span.Links) != 1 || span.Links[0].SpanContext.TraceID().String() != callerTrace) {
			t.Errorf("the attempt has the links %v, want the trace of the request", span.Links)
		} else if span.Name == "process default" {
			return
		}
	}
	t.Error("the attempt has no span")
}
