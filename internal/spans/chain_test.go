package spans_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// play runs an agent that a request has enqueued: it waits for two children, of which one fails once and one times
// out, and then enqueues a last task. It returns the span of the request.
func play(s *stage) trace.SpanContext {
	s.Helper()
	agentwait.Handle(s.w, "research", func(a *agentwait.Agent, _ []byte) ([]byte, error) {
		page := agentwait.Schedule[string](a, "p", queue.Task{Kind: "page", Queue: "pages", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
		slow := agentwait.Schedule[string](a, "s", queue.Task{Kind: "slow", Queue: "never", Timeout: time.Minute})
		if _, err := agentwait.JoinAllSettled(a, page, slow); err != nil {
			return nil, err
		}
		_, err := s.q.Enqueue(a, queue.Task{Kind: "mail"})
		return []byte(`"done"`), err
	})
	worker.Handle(s.w, "page", func(ctx context.Context, _ string) (string, error) {
		if worker.Info(ctx).Attempt == 1 {
			return "", errors.New("no luck")
		}
		return "text", nil
	})
	worker.Handle(s.w, "mail", func(context.Context, []byte) ([]byte, error) { return nil, nil })

	ctx, request := s.provider.Tracer("test").Start(s.ctx, "POST /research")
	id := s.enqueue(ctx, queue.Task{Kind: "research"})
	request.End()
	s.drain() // the agent suspends
	for range 2 {
		if ran, err := s.w.RunOne(s.ctx, "pages"); err != nil || ran == nil {
			s.Fatal(ran, err)
		}
	}
	s.advance(2 * time.Minute) // slow times out
	s.drain()                  // the agent ends; mail runs
	if r := s.get(id); r.Status != queue.Completed {
		s.Fatalf("the agent is %s: %s", r.Status, r.Error)
	}
	return request.SpanContext()
}

// The kind of each span that play makes, with how many of them.
var wanted = map[string]int{
	"send default": 2, "send": 1, "send pages": 0, "process research": 2, "process pages": 2, "process default": 1, "expire never": 1,
	"ack default": 2, "ack pages": 1, "nack pages": 1,
}

func TestARunIsAChainOfLinkedTraces(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	request := play(s)
	for name, n := range wanted {
		if got := len(s.named(name)); got != n {
			t.Errorf("%d spans are named %q, want %d", got, name, n)
		}
	}
	reached := follow(s.exported.GetSpans(), request, false)
	for _, span := range s.exported.GetSpans() {
		if !reached[span.SpanContext.SpanID()] {
			t.Errorf("no chain of parents and links leads from %q to the request", span.Name)
		}
	}
	traces := map[trace.TraceID]bool{}
	for _, span := range s.exported.GetSpans() {
		traces[span.SpanContext.TraceID()] = true
	}
	if len(traces) < 6 {
		t.Errorf("all spans are in %d traces, want one for each attempt", len(traces))
	}
	checkRun(s, request)
}

func TestWithParentARunIsOneTrace(t *testing.T) {
	s := newStage(t, queue.Tracing{Parent: true})
	request := play(s)
	for name, n := range wanted {
		if got := len(s.named(name)); got != n {
			t.Errorf("%d spans are named %q, want %d", got, name, n)
		}
	}
	for _, span := range s.exported.GetSpans() {
		if span.SpanContext.TraceID() != request.TraceID() {
			t.Errorf("%q is in another trace than the request", span.Name)
		}
	}
	if reached := follow(s.exported.GetSpans(), request, true); len(reached) != len(s.exported.GetSpans()) {
		t.Errorf("parents lead from %d of %d spans to the request", len(reached), len(s.exported.GetSpans()))
	}
}

// follow returns the spans from which parents, and links unless parents is set, lead to a span.
func follow(spans tracetest.SpanStubs, to trace.SpanContext, parents bool) map[trace.SpanID]bool {
	reached := map[trace.SpanID]bool{to.SpanID(): true}
	for more := true; more; {
		more = false
		for _, span := range spans {
			next := []trace.SpanID{span.Parent.SpanID()}
			for _, link := range span.Links {
				if !parents {
					next = append(next, link.SpanContext.SpanID())
				}
			}
			if !reached[span.SpanContext.SpanID()] && slices.ContainsFunc(next, func(id trace.SpanID) bool { return reached[id] }) {
				reached[span.SpanContext.SpanID()], more = true, true
			}
		}
	}
	return reached
}

// checkRun checks the links between the spans, and their attributes.
func checkRun(s *stage, request trace.SpanContext) {
	s.Helper()
	sends, runs, pages := s.named("send default"), s.named("process research"), s.named("process pages")
	children, expired := s.one("send"), s.one("expire never")
	is := func(what string, got, want any) {
		s.Helper()
		if got != want {
			s.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	is("the parent of the first send", sends[0].Parent.SpanID(), request.SpanID())
	is("the parent of the sending of children", children.Parent.SpanID(), runs[0].SpanContext.SpanID())
	is("the parent of the last send", sends[1].Parent.SpanID(), runs[1].SpanContext.SpanID())
	for i, run := range runs {
		is("a run is linked to the sender", linked(run, sends[0].SpanContext), true)
		is("the second run is linked to the members", linked(run, children.SpanContext), i == 1)
	}
	is("the mode of the wait", value(runs[1], "curfew.wait.mode"), "settled")
	is("links of the second run", len(runs[1].Links), 3) // its sender and two members
	for i, page := range pages {
		is("an attempt is linked to the sender", linked(page, children.SpanContext), true)
		is("the number of an attempt", value(page, "curfew.task.attempt"), []string{"1", "2"}[i])
		is("the status of an attempt", page.Status.Code.String(), []string{"Error", "Unset"}[i])
		is("the kind of a task", value(page, "curfew.task.kind"), "page")
		is("the run", value(page, "messaging.message.conversation_id"), value(runs[0], "messaging.message.id"))
	}
	is("the description of the error", pages[0].Status.Description, "no luck")
	is("the type of the error", value(pages[0], "error.type"), "error")
	is("expire is linked to the sender", linked(expired, children.SpanContext), true)
	is("the type of the end", value(expired, "error.type"), "timeout")
	is("the type of the timeout", value(expired, "curfew.timeout.type"), "execution")
	is("the lag", value(expired, "curfew.detection_lag_ms"), "60000")
	is("children of the batch", value(children, "messaging.batch.message_count"), "2")
	for _, span := range s.exported.GetSpans() {
		if span.SpanContext.SpanID() != request.SpanID() && (value(span, "messaging.system") != "curfew" || value(span, "server.port") == "") {
			s.Errorf("%q lacks messaging.system or server.port: %v", span.Name, span.Attributes)
		}
	}
}

func TestATimeoutHasOneExpireAmongManyReapers(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	s.enqueue(s.ctx, queue.Task{Kind: "late", Timeout: time.Second})
	s.advance(2 * time.Second)
	for range 8 {
		if _, err := reaper.Sweep(s.ctx, s.q, 0, "other", 100, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if !linked(s.one("expire default"), s.one("send default").SpanContext) {
		t.Error("expire is not linked to the sender")
	}
}
