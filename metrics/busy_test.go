package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// order is a flow with a node that is retried after a timeout.
const order = `
id: order
timeout: 1h
spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks:
      - {name: pack, executor: {type: pack}, attempt_timeout: 1s, retry: {limit: 1}}
`

// busy returns the collectors of a namespace in which everything has happened that a metric counts, at instants that are
// the same in every run.
func busy(t *testing.T, prefix string) (c *curfewtest.Stage, namespace, ofWorker, process prometheus.Collector) {
	t.Helper()
	config := metrics.Config{Prefix: prefix}
	c = curfewtest.New(t, curfewtest.Config{Start: testclock.Start})
	namespace, ofWorker, process = metrics.NewNamespace(c.Queue, config), metrics.NewWorker(c.Worker, config), metrics.NewProcess(c.Queue, config)
	worker.Handle(c.Worker, "render", func(_ context.Context, ms int) (string, error) {
		c.Advance(time.Duration(ms) * time.Millisecond)
		return "done", nil
	})
	worker.Handle(c.Worker, "slow-once", func(ctx context.Context, _ string) (string, error) {
		if worker.Info(ctx).Attempt == 1 {
			c.Advance(2 * time.Second)
			return "", ctx.Err()
		}
		return "", worker.Discard(errors.New("no such page"))
	})
	agentwait.Handle(c.Worker, "book", func(a *agentwait.Agent, _ string) (string, error) {
		return agentwait.Run[string](a, 40, queue.Task{Kind: "render", Queue: "pages"})
	})
	agentwait.Handle(c.Worker, "ask", func(a *agentwait.Agent, _ string) (string, error) {
		return agentwait.Await(a, agentwait.Signal[string](a, "answer"))
	})
	worker.Handle(c.Worker, "pack", func(ctx context.Context, _ map[string]any) (string, error) {
		if worker.Info(ctx).Attempt == 1 {
			c.Advance(2 * time.Second)
			return "", ctx.Err()
		}
		return "packed", nil
	})
	flow.Register(c.Worker)
	if _, err := flow.Put(t.Context(), c.Queue, []byte(order)); err != nil {
		t.Fatal(err)
	}
	for _, task := range []queue.Task{
		{Kind: "render", Payload: []byte("15")},
		{Kind: "render", Payload: []byte("3000"), Timeout: 2 * time.Second},
		{Kind: "slow-once", AttemptTimeout: time.Second, OnTimeout: queue.OnTimeoutRetry, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}},
		{Kind: "book"},
		{Kind: "ask"},
		{Kind: "flow.order"},
	} {
		c.Enqueue(task)
		c.Drain()
	}
	late := c.Enqueue(queue.Task{Kind: "render", Queue: "mail", Timeout: time.Second})
	c.Advance(1500 * time.Millisecond)
	if _, err := c.Queue.Retry(t.Context(), late.ID, func(task *queue.Task) { task.Timeout = time.Hour }); err != nil {
		t.Fatal(err)
	}
	c.Enqueue(queue.Task{Kind: "render", Queue: "mail", Delay: time.Hour})
	c.Enqueue(queue.Task{Kind: "render", Queue: "mail", Timeout: 30 * time.Second})
	if _, err := c.Queue.LimitLength(t.Context(), "mail", 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Queue.Pause(t.Context(), "mail"); err != nil {
		t.Fatal(err)
	}
	held := c.Enqueue(queue.Task{Kind: "scan", Queue: "scans"})
	ask := claim.Ask{N: 1, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "scans", N: 1}}}
	if _, err := claim.Of(c.Queue).Fetch(t.Context(), 0, "w0", ask); err != nil {
		t.Fatal(err)
	}
	give := []queue.Outcome{{ID: held.ID, Epoch: 1, Verb: queue.Release, Class: queue.ClassNoHandler}}
	if _, err := claim.Of(c.Queue).Settle(t.Context(), 0, "w0", queue.NewCall(), give, claim.Ask{}); err != nil {
		t.Fatal(err)
	}
	if _, err := claim.Of(c.Queue).Heartbeat(t.Context(), 0, "w0", 0, 1, nil); err != nil { // it ends
		t.Fatal(err)
	}
	if _, err := claim.Of(c.Queue).Heartbeat(t.Context(), 0, "w1", time.Minute, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := claim.Of(c.Queue).Describe(t.Context(), 0, "w1", queue.WorkerRunning, `{"queues":{"mail":1}}`); err != nil {
		t.Fatal(err)
	}
	if _, err := reaper.Sweep(t.Context(), c.Queue, 0, "r1", 100, time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := reaper.Sweep(t.Context(), c.Queue, 0, "two words", 100, time.Second); err == nil {
		t.Fatal("a sweep under a name of two words succeeded, want an error to be counted")
	}
	return c, namespace, ofWorker, process
}

// gather returns the metrics of collectors, by name.
func gather(t *testing.T, collectors ...prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	list, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*dto.MetricFamily{}
	for _, f := range list {
		all[f.GetName()] = f
	}
	return all
}

// value returns the sum of the samples of a counter or gauge that have these labels, as name, value, ….
func value(all map[string]*dto.MetricFamily, name string, labels ...string) (sum float64) {
	for _, m := range all[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		if fits {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// scrape returns the text of a scrape. accept is the format that the scraper asks for.
func scrape(t *testing.T, accept string, collectors ...prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", accept)
	answer := httptest.NewRecorder()
	metrics.Handler(registry).ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Fatalf("a scrape is answered with %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}
