package metrics_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func serveMetrics(q *queue.Queue, w *worker.Worker) error {
	registry := prometheus.NewRegistry()
	config := metrics.Config{} // Prefix: "flovyn_" gives flovyn_task_timeouts_total
	registry.MustRegister(
		metrics.NewNamespace(q, config), // what Redis counts
		metrics.NewWorker(w, config),    // before w.Run, after middleware that starts traces
		metrics.NewProcess(q, config),   // calls, sweeps and the clock of this process
	)
	http.Handle("/metrics", metrics.Handler(registry))
	return http.ListenAndServe("127.0.0.1:9090", nil)
}

// A scrape of a namespace has what all programs have done.
func ExampleNewNamespace() {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	q, err := queue.Open(context.Background(), server.Client(), queue.Config{Namespace: "shop", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Enqueue(context.Background(), queue.Task{Kind: "render"}); err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewNamespace(q, metrics.Config{}))
	answer := httptest.NewRecorder()
	metrics.Handler(registry).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "curfew_tasks_enqueued_total") {
			fmt.Print(line)
		}
	}
	// Output: curfew_tasks_enqueued_total{kind="render",namespace="shop",queue="default",source="client",when="now"} 1
}

var _ = serveMetrics // docs/how-to/scrape.md has it
