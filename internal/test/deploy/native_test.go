package deploy

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// The panels have values whether Prometheus stores classic or native buckets. If it stores native ones, it drops the classic buckets of a
// histogram that has both.
func TestPanelsWorkWithNativeAndClassicHistograms(t *testing.T) {
	program(t, "prometheus")
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewProcess(q, metrics.Config{}), metrics.NewNamespace(q, metrics.Config{}))
	server := httptest.NewServer(metrics.Handler(registry))
	t.Cleanup(server.Close)
	panels := board(t).Panels
	calls := panels[slices.IndexFunc(panels, func(p panel) bool { return p.Title == "Time of calls" })]
	expression := strings.NewReplacer("$namespace", q.Namespace(), "$__rate_interval", "30s").Replace(calls.Targets[0].Expr)
	histogram, _ := find("curfew_script_duration_seconds")
	for name, row := range map[string]struct {
		flags   []string
		classic float64 // how many series with classic buckets there are, or -1
	}{
		"classic": {nil, float64(len(histogram.Buckets()) + 1)},
		"native":  {[]string{"--enable-feature=native-histograms"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, []string{strings.TrimPrefix(server.URL, "http://")}, nil, row.flags...)
			const script = `{script="read_queues"}`
			await.Until(t, "the panel has a value", func() bool {
				if _, err := q.Stats(t.Context()); err != nil {
					t.Fatal(err)
				}
				n := w.value("(" + expression + `) and on (script) (curfew_script_duration_seconds` + script + ` or curfew_script_duration_seconds_count` + script + `)`)
				return n > 0 && n < 30
			})
			if n := w.value("count(curfew_script_duration_seconds_bucket" + script + ")"); n != row.classic {
				t.Errorf("there are %v series with classic buckets, want %v", n, row.classic)
			}
			// What Redis counts has classic buckets only, so alerts and the other panels need no second form.
			w.awaitValue(`count(curfew_up == 1)`, 1)
		})
	}
}
