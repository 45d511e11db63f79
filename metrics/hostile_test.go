package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// hostile are names that a damaged record can have, with the labels that a scraper must read.
var hostile = map[string]string{
	"two\nlines": "two\nlines", `a "quoted" name`: `a "quoted" name`, `back\slash\n`: `back\slash\n`, "bad\xff\xfeutf8": "bad\uFFFDutf8",
	strings.Repeat("x", 200): strings.Repeat("x", 200), "": "", "{a=\"b\"} 7\n# HELP": "{a=\"b\"} 7\n# HELP",
}

// A scraper must read back each name, and no name can become a line of its own.
func TestTheTextOfHostileNamesIsRead(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	want := map[string]float64{}
	for name, label := range hostile {
		if name != "" { // a queue without a name has no field
			want[label] = 7
		}
		if err := errors.Join(q.Client().SAdd(t.Context(), q.Root(0)+":kinds", name).Err(),
			q.Client().HSet(t.Context(), q.Root(0)+":figures:"+name, "q ended COMPLETED", 7, "q duration 5", 7).Err()); err != nil {
			t.Fatal(err)
		}
	}
	want[""] = 7
	namespace, process := metrics.NewNamespace(q, metrics.Config{}), metrics.NewProcess(q, metrics.Config{})
	if _, err := reaper.Sweep(t.Context(), q, 0, "r", 1, time.Second); err != nil {
		t.Fatal(err)
	}
	for what, collector := range map[string]prometheus.Collector{"namespace": namespace, "process": process} {
		if problems, err := testutil.CollectAndLint(collector); err != nil || len(problems) > 0 {
			t.Errorf("lint of a %s = %v, %v, want no problem", what, problems, err)
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, "", namespace)))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families["curfew_tasks_finished_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "kind" {
				got[l.GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	for label, n := range want {
		if got[label] != n {
			t.Errorf("the kind %q has %v ends in the text, want %v", label, got[label], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the text has %d kinds, want %d", len(got), len(want))
	}
}

// Handlers of kinds that the program names are measured. A name that Curfew accepts is a label as it is.
func TestTheTextOfAWorkerIsReadAndLintClean(t *testing.T) {
	c := curfewtest.New(t)
	c.Worker.Use(traced(true))
	ofWorker := metrics.NewWorker(c.Worker, metrics.Config{})
	kind := strings.Repeat("k", 100)
	worker.Handle(c.Worker, kind, func(context.Context, string) (string, error) { return "", nil })
	c.Enqueue(queue.Task{Kind: kind})
	c.Drain()
	if problems, err := testutil.CollectAndLint(ofWorker); err != nil || len(problems) > 0 {
		t.Errorf("lint = %v, %v, want no problem", problems, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, "", ofWorker)))
	if err != nil || !strings.Contains(families["curfew_worker_handler_seconds"].String(), strconv.Quote(kind)) {
		t.Errorf("the text is read as %v, %v", families["curfew_worker_handler_seconds"], err)
	}
}

// The calls of a process have exemplars, too: of the trace of whoever made the call.
func TestACallWithinATraceIsAnExemplar(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	process := metrics.NewProcess(q, metrics.Config{})
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{9}, SpanID: trace.SpanID{4}, TraceFlags: trace.FlagsSampled}))
	if _, err := q.GetAll(ctx, []string{"0-x"}); err != nil {
		t.Fatal(err)
	}
	const exemplar = `# {trace_id="09000000000000000000000000000000"}`
	if text := scrape(t, openMetrics, process); !strings.Contains(text, exemplar) || !strings.HasSuffix(text, "# EOF\n") {
		t.Errorf("OpenMetrics has no exemplar of the call:\n%s", text)
	}
	if text := scrape(t, http.MethodGet, process); strings.Contains(text, "trace_id") {
		t.Error("the plain text has an exemplar, and that format knows none")
	}
}
