package spans_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/baggage"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

const (
	given  = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	sender = "0123456789abcdef"
)

func TestWithoutAProviderNoHeaderIsWritten(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	s.open(queue.Tracing{Parent: true, Baggage: true, EachInBatch: true}) // without a provider
	ctx, span := s.provider.Tracer("test").Start(s.ctx, "request")
	defer span.End()
	if h := s.get(s.enqueue(ctx, queue.Task{Kind: "k"})).Headers; h != nil {
		t.Errorf("headers = %v, want none", h)
	}
	headers := map[string]string{"TraceParent": given, "tenant": "a"}
	id := s.enqueue(ctx, queue.Task{Kind: "k", Headers: headers})
	worker.Handle(s.w, "k", func(ctx context.Context, _ []byte) (map[string]string, error) { return worker.Info(ctx).Headers, nil })
	s.drain()
	if r := s.get(id); !maps.Equal(r.Headers, headers) || string(r.Result) != `{"TraceParent":"`+given+`","tenant":"a"}` {
		t.Errorf("headers = %v, the handler got %s", r.Headers, r.Result)
	}
	if names := s.names(); len(names) != 0 {
		t.Errorf("spans %v were made without a provider", names)
	}
}

func TestAGivenTraceparentIsKept(t *testing.T) {
	for name, headers := range map[string]map[string]string{
		"as it is":         {"traceparent": given},
		"in another case":  {"TraceParent": given, "tracestate": "a=b"},
		"beside a tenant":  {"TRACEPARENT": given, "tenant": "x"},
		"only tracestate":  {"tracestate": "a=b"},
		"malformed":        {"traceparent": "00-zz-1-01"},
		"upper-case hex":   {"traceparent": strings.ToUpper(given)},
		"all zero":         {"traceparent": "00-00000000000000000000000000000000-0000000000000000-01"},
		"empty":            {"traceparent": ""},
		"huge":             {"traceparent": given + strings.Repeat("0", 1<<20-100)},
		"huge tracestate":  {"traceparent": given, "tracestate": strings.Repeat("a=b,", 200_000)},
		"in two cases":     {"traceparent": given, "Traceparent": strings.ReplaceAll(given, "0123456789abcdef-01", "1111111111111111-01")},
		"control and NUL":  {"traceparent": "00-\x00\x1b-\n-01"},
		"a hostile state":  {"traceparent": given, "tracestate": "\x00=\x1b,=,=,"},
		"an old version":   {"traceparent": "ff" + given[2:]},
		"flags of nothing": {"traceparent": given[:53] + "ff"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, queue.Tracing{})
			worker.Handle(s.w, "k", func(context.Context, []byte) ([]byte, error) { return nil, nil })
			id := s.enqueue(s.ctx, queue.Task{Kind: "k", Headers: maps.Clone(headers)})
			s.drain()
			r := s.get(id)
			if !maps.Equal(r.Headers, headers) || r.Status != queue.Completed {
				t.Errorf("%.200v and %s, want %.200v and COMPLETED", r.Headers, r.Status, headers)
			}
			valid := name == "as it is" || name == "in another case" || name == "beside a tenant" || name == "huge tracestate" || name == "a hostile state"
			for _, span := range []string{"send default", "process default", "receive default"} {
				links := s.one(span).Links
				if want := map[bool]int{true: 1}[valid]; len(links) != want {
					t.Errorf("%s has %d links, want %d", span, len(links), want)
				} else if valid && links[0].SpanContext.SpanID().String() != sender {
					t.Errorf("%s is linked to %s, want %s", span, links[0].SpanContext.SpanID(), sender)
				}
			}
		})
	}
}

func TestARepeatIsNoConflictBecauseItsSpanIsAnother(t *testing.T) {
	s := newStage(t, queue.Tracing{EachInBatch: true})
	for _, task := range []queue.Task{
		{Kind: "k", Name: "order-17", Payload: []byte("1")},
		{Kind: "k", IdempotencyKey: "key", Payload: []byte("1")},
		{Kind: "k", ID: "0-ABCDEF", Payload: []byte("1")},
	} {
		id := s.enqueue(s.ctx, task)
		was := s.get(id).Headers["traceparent"]
		for range 2 {
			if again := s.enqueue(s.ctx, task); again != id {
				t.Errorf("a repeat is %s, want %s", again, id)
			}
			receipts, err := s.q.EnqueueAll(s.ctx, []queue.Task{task, task})
			if err != nil || receipts[0].ID != id || receipts[0].Err != nil || receipts[0].New || receipts[1].ID != id {
				t.Errorf("repeats in a batch = %+v, %v", receipts, err)
			}
		}
		if is := s.get(id).Headers["traceparent"]; is != was || was == "" {
			t.Errorf("traceparent = %q after the repeats, want %q", is, was)
		}
	}
	task := queue.Task{Kind: "k", Name: "order-17", Payload: []byte("2")}
	if _, err := s.q.Enqueue(s.ctx, task); !errors.Is(err, refusal.ErrConflict) {
		t.Errorf("other content: %v, want ErrConflict", err)
	}
	last := s.named("send default")
	if span := last[len(last)-1]; span.Status.Description == "" || value(span, "error.type") != "conflict" {
		t.Errorf("the span of the conflict has %+v, %s", span.Status, value(span, "error.type"))
	}
}

func TestHeadersThatAreNearTheLimitAreNotExceeded(t *testing.T) {
	s := newStage(t, queue.Tracing{Baggage: true})
	for size, carried := range map[int]bool{10: true, 8<<10 - 100: true, 8<<10 - 50: false, 1<<20 - 1: false} {
		id := s.enqueue(s.ctx, queue.Task{Kind: "k", Headers: map[string]string{"a": strings.Repeat("x", size-1)}})
		if h := s.get(id).Headers; (h["traceparent"] != "") != carried || len(h["a"]) != size-1 {
			t.Errorf("with %d bytes of headers traceparent = %q", size, h["traceparent"])
		}
	}
}

func TestTheTasksOfTheCallerAreNotChanged(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	mine := map[string]string{"a": "b"}
	tasks := []queue.Task{{Kind: "k", Headers: mine}, {Kind: "k"}}
	if _, err := s.q.EnqueueAll(s.ctx, tasks); err != nil {
		t.Fatal(err)
	}
	s.enqueue(s.ctx, tasks[0])
	if len(mine) != 1 || tasks[1].Headers != nil {
		t.Errorf("the tasks of the caller have the headers %v, %v", mine, tasks[1].Headers)
	}
}

func TestABatchHasOneSpanUnlessEachIsWanted(t *testing.T) {
	tasks := make([]queue.Task, 150)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Queue: "bulk"}
	}
	for _, each := range []bool{false, true} {
		t.Run(fmt.Sprint(each), func(t *testing.T) {
			s := newStage(t, queue.Tracing{EachInBatch: each})
			receipts, err := s.q.EnqueueAll(s.ctx, tasks)
			if err != nil {
				t.Fatal(err)
			}
			send, seen := s.one("send bulk"), map[string]bool{}
			for _, r := range receipts {
				seen[s.get(r.ID).Headers["traceparent"]] = true
			}
			kind, creates, links, different := trace.SpanKindProducer, 0, 0, 1
			if each {
				kind, creates, links, different = trace.SpanKindClient, 150, 100, 150
			}
			if send.SpanKind != kind || len(s.named("create bulk")) != creates || len(send.Links) != links || len(seen) != different || value(send, "messaging.batch.message_count") != "150" {
				t.Errorf("kind %v, %d creates, %d links, %d contexts, want %v, %d, %d, %d", send.SpanKind, len(s.named("create bulk")), len(send.Links), len(seen), kind, creates, links, different)
			}
		})
	}
}

func TestTheSamplingOfTheSenderIsRespected(t *testing.T) {
	s := newStage(t, queue.Tracing{Parent: true}, sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
	worker.Handle(s.w, "k", func(ctx context.Context, _ []byte) ([]byte, error) {
		_, err := s.q.Enqueue(ctx, queue.Task{Kind: "next", Queue: "later"})
		return nil, err
	})
	not := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	id := s.enqueue(trace.ContextWithSpanContext(s.ctx, not), queue.Task{Kind: "k"})
	s.drain()
	if h := s.get(id).Headers["traceparent"]; !strings.HasPrefix(h, "00-"+not.TraceID().String()) || !strings.HasSuffix(h, "-00") {
		t.Errorf("traceparent = %q, want the trace of the sender and no sampling", h)
	}
	if names := s.names(); len(names) != 0 {
		t.Errorf("spans %v of a trace that is not sampled", names)
	}
	s.enqueue(s.ctx, queue.Task{Kind: "k"})
	s.drain()
	s.one("process default")
}

func TestBaggageIsCarriedOnlyOnRequest(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		s := newStage(t, queue.Tracing{Baggage: wanted})
		worker.Handle(s.w, "k", func(ctx context.Context, _ []byte) (string, error) {
			return baggage.FromContext(ctx).Member("tenant").Value(), nil
		})
		member, _ := baggage.NewMember("tenant", "acme")
		bag, _ := baggage.New(member)
		id := s.enqueue(baggage.ContextWithBaggage(s.ctx, bag), queue.Task{Kind: "k"})
		s.drain()
		if got, want := string(s.get(id).Result), map[bool]string{true: `"acme"`, false: `""`}[wanted]; got != want {
			t.Errorf("baggage %v: the handler got %s, want %s", wanted, got, want)
		}
	}
}

func TestAHookCarriesTheContextOfItsTask(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	worker.Handle(s.w, "after", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	first := s.enqueue(s.ctx, queue.Task{Kind: "late", Timeout: time.Second, Headers: map[string]string{"tenant": "a"}, Hooks: queue.Hooks{OnTimeout: queue.Hook{Kind: "after"}}})
	odd := s.enqueue(s.ctx, queue.Task{Kind: "late", Timeout: time.Second, Headers: map[string]string{"traceparent": "x\"\n\x00" + strings.Repeat("é", 300)},
		Hooks: queue.Hooks{OnTimeout: queue.Hook{Kind: "after"}}})
	s.advance(2 * time.Second)
	s.drain()
	want := s.get(first).Headers["traceparent"]
	if h := s.get(first + "!timeout").Headers; len(h) != 1 || h["traceparent"] != want || want == "" {
		t.Errorf("headers of the hook = %v, want traceparent %s", h, want)
	}
	if h := s.get(odd + "!timeout").Headers; h != nil {
		t.Errorf("headers of a hook = %v, want none of a task with a header that is no context", h)
	}
	if !linked(s.named("process default")[0], s.named("send default")[0].SpanContext) {
		t.Error("the attempt of the hook is not linked to the sender of its task")
	}
}

func TestASignalAndATimerCarryNoContext(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	agentwait.Handle(s.w, "agent", func(a *agentwait.Agent, _ []byte) (string, error) {
		return agentwait.Await(a, agentwait.Signal[string](a, "go"))
	})
	id := s.enqueue(s.ctx, queue.Task{Kind: "agent"})
	s.drain()
	if _, err := s.q.Signal(s.ctx, id, "go", []byte("no JSON")); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("a signal that is not JSON: %v, want ErrInvalid", err)
	}
	if _, err := s.q.Signal(s.ctx, id, "go", []byte(`"yes"`)); err != nil {
		t.Fatal(err)
	}
	s.drain()
	if r := s.get(id); string(r.Result) != `"yes"` {
		t.Errorf("the agent ended with %s %s", r.Result, r.Error)
	}
	if h := s.get(s.enqueue(s.ctx, queue.Task{Kind: "k", Timer: true, Delay: time.Hour})).Headers; h != nil {
		t.Errorf("headers of a timer = %v", h)
	}
}

func TestTheErrorOfASpanIsShort(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	worker.Handle(s.w, "k", func(context.Context, []byte) ([]byte, error) { return nil, errors.New(strings.Repeat("é", 10_000)) })
	s.enqueue(s.ctx, queue.Task{Kind: "k"})
	s.drain()
	if d := s.one("process default").Status.Description; len(d) > 260 || len(d) < 200 || !utf8.ValidString(d) {
		t.Errorf("the description has %d bytes: %q", len(d), d)
	}
	s.one("nack default")
}

func TestACancellationIsLinkedToItsTask(t *testing.T) {
	s := newStage(t, queue.Tracing{})
	id := s.enqueue(s.ctx, queue.Task{Kind: "k", Queue: "slow"})
	if _, err := s.q.Cancel(s.ctx, id, "no"); err != nil {
		t.Fatal(err)
	}
	if span := s.one("cancel slow"); !linked(span, s.one("send slow").SpanContext) || value(span, "messaging.message.id") != id {
		t.Errorf("cancel has the links %v and the id %s", span.Links, value(span, "messaging.message.id"))
	}
	if _, err := s.q.Cancel(s.ctx, "0-NOBODY", ""); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Cancel = %v, want ErrNotFound", err)
	}
	s.one("cancel")
}
