package metrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

const openMetrics = "application/openmetrics-text;version=1.0.0"

// traced is middleware that starts a trace, as a tracing library does.
func traced(sampled bool) func(worker.Handler) worker.Handler {
	config := trace.SpanContextConfig{TraceID: trace.TraceID{1, 2, 3}, SpanID: trace.SpanID{4}}
	if sampled {
		config.TraceFlags = trace.FlagsSampled
	}
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, payload []byte) ([]byte, error) {
			return next(trace.ContextWithSpanContext(ctx, trace.NewSpanContext(config)), payload)
		}
	}
}

func TestASampledTraceIsAnExemplarOfItsHandler(t *testing.T) {
	for _, sampled := range []bool{true, false} {
		c := curfewtest.New(t)
		c.Worker.Use(traced(sampled))
		ofWorker := metrics.NewWorker(c.Worker, metrics.Config{})
		worker.Handle(c.Worker, "ok", func(context.Context, string) (string, error) { return "", nil })
		worker.Handle(c.Worker, "bad", func(context.Context, string) (string, error) { panic("no") })
		id := c.Enqueue(queue.Task{Kind: "ok"}).ID
		c.Enqueue(queue.Task{Kind: "bad", ID: "0-" + strings.Repeat("x", 60)})
		c.Drain()
		text := scrape(t, openMetrics, ofWorker)
		if strings.Contains(text, `trace_id="01020300000000000000000000000000"`) != sampled || strings.Contains(text, `task_id="`+id+`"`) != sampled {
			t.Errorf("with sampled %v the text is\n%s", sampled, text)
		}
		if strings.Contains(scrape(t, "", ofWorker), "trace_id") {
			t.Error("a scrape in the plain format has exemplars, and that format knows none")
		}
		all := gather(t, ofWorker)
		n := uint64(0)
		for _, m := range all["curfew_worker_handler_seconds"].GetMetric() {
			n += m.GetHistogram().GetSampleCount()
			if m.GetHistogram().Schema == nil {
				t.Error("the histogram has no native buckets")
			}
		}
		if n != 2 || value(all, "curfew_worker_attempts_started_total") != 2 || value(all, "curfew_worker_outcomes_total", "outcome", "completed") != 1 ||
			value(all, "curfew_worker_outcomes_total", "outcome", "failed") != 1 || value(all, "curfew_worker_slots") != 10 {
			t.Errorf("%d handlers were measured, %v started, with the outcomes %v, want 2, one completed and one failed", n,
				value(all, "curfew_worker_attempts_started_total"), all["curfew_worker_outcomes_total"])
		}
	}
}

// An exemplar has a limited length, and a longer one is a panic of the client library.
func TestALongIDDoesNotBreakAnExemplar(t *testing.T) {
	c := curfewtest.New(t)
	c.Worker.Use(traced(true))
	ofWorker := metrics.NewWorker(c.Worker, metrics.Config{})
	worker.Handle(c.Worker, "ok", func(context.Context, string) (string, error) { return "", nil })
	id := c.Enqueue(queue.Task{Kind: "ok", Name: strings.Repeat("x", 120)}).ID
	c.Drain()
	c.MustComplete(id)
	if text := scrape(t, openMetrics, ofWorker); !strings.Contains(text, "trace_id") || strings.Contains(text, "task_id") {
		t.Errorf("the exemplar of a task with an id of %d bytes is in\n%s", len(id), text)
	}
}

// Collectors of two workers of a namespace need a label, which the program chooses.
func TestTwoWorkersCanBeRegistered(t *testing.T) {
	c := curfewtest.New(t)
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"mail", "pages"} {
		w := worker.New(c.Queue, worker.Config{Concurrency: 3})
		if err := prometheus.WrapRegistererWith(prometheus.Labels{"worker": name}, registry).Register(metrics.NewWorker(w, metrics.Config{})); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
}

func TestAnInvalidConfigIsRefusedByTheRegistry(t *testing.T) {
	c := curfewtest.New(t)
	for field, config := range map[string]metrics.Config{"Prefix": {Prefix: "1 2"}, "MaxKinds": {MaxKinds: 1001}, "MaxQueues": {MaxQueues: -1},
		"MaxPairs": {MaxPairs: -1}, "MaxNodes": {MaxNodes: 10_001}, "CacheFor": {CacheFor: -1}, "Timeout": {Timeout: -1}} {
		for what, collector := range map[string]prometheus.Collector{"namespace": metrics.NewNamespace(c.Queue, config),
			"worker": metrics.NewWorker(c.Worker, config), "process": metrics.NewProcess(c.Queue, config)} {
			err := prometheus.NewRegistry().Register(collector)
			if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("Register of a %s with an invalid %s = %v, want ErrInvalid that names the field", what, field, err)
			}
		}
	}
}
