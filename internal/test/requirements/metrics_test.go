package requirements

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// counted returns the sums of a metric of the namespace by the values of a label, as an exporter with the names of the
// document shows them. A histogram counts its observations.
func (s *stage) counted(name, label string) map[string]float64 {
	s.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewNamespace(s.q, metrics.Config{Prefix: "flovyn_", CacheFor: time.Nanosecond, Timeout: time.Minute}))
	families, err := registry.Gather()
	if err != nil {
		s.Fatal(err)
	}
	sums := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if n := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()); l.GetName() == label && n != 0 {
					sums[l.GetValue()] += n // what usually happens is exported as 0 before
				}
			}
		}
	}
	return sums
}

func (s *stage) compare(what string, got, want map[string]float64) {
	s.Helper()
	if !maps.Equal(got, want) {
		s.Errorf("%s: %v, want %v", what, got, want)
	}
}

// endings ends tasks in each way: two time out while they run, one while it is PENDING, one completes, one fails, and one
// times out an attempt and then completes.
func endings(t *testing.T) *stage {
	s := frozen(t)
	s.enqueueAll(2, func(int) queue.Task { return queue.Task{Kind: "embed", Timeout: time.Second} })
	s.fetch(2)
	s.enqueue(queue.Task{Kind: "embed", Queue: "idle", Timeout: time.Second})
	s.advance(1100 * time.Millisecond)
	s.sweep()
	s.sweep() // a second look counts nothing
	s.enqueue(queue.Task{Kind: "render", Timeout: time.Minute})
	s.complete(s.claim())
	s.enqueue(queue.Task{Kind: "render"})
	s.settle(s.claim(), queue.Outcome{Verb: queue.Fail, Error: "no paper"})
	s.enqueue(queue.Task{Kind: "print", AttemptTimeout: time.Second, OnTimeout: queue.OnTimeoutRetry, MaxRetries: 1})
	s.claim()
	s.advance(1001 * time.Millisecond)
	s.sweep()
	s.advance(time.Hour)
	s.sweep()
	s.complete(s.claim())
	return s
}

// timeoutsCounter: the counter is the number of tasks that have timed out, not of attempts or of looks.
func timeoutsCounter(t *testing.T) {
	s := endings(t)
	s.compare("flovyn_task_timeouts_total", s.counted("flovyn_task_timeouts_total", "namespace"), map[string]float64{s.q.Namespace(): 3})
}

// durationsHistogram: each ended task that ran is observed once, and timeout is true for those that timed out.
func durationsHistogram(t *testing.T) {
	s := endings(t)
	s.compare("flovyn_task_duration_seconds", s.counted("flovyn_task_duration_seconds", "timeout"), map[string]float64{"true": 2, "false": 3})
}

// alertsAndTuning: timeouts are told apart by kind, type and policy; the time that tasks needed and used is known by kind; the
// lag and the agents that wait without a limit are known.
func alertsAndTuning(t *testing.T) {
	s := endings(t)
	const timeouts = "flovyn_task_timeouts_total"
	s.compare("by kind", s.counted(timeouts, "kind"), map[string]float64{"embed": 3})
	s.compare("by type", s.counted(timeouts, "type"), map[string]float64{"execution": 3})
	s.compare("by policy", s.counted(timeouts, "policy"), map[string]float64{"fail": 3})
	s.compare("attempts", s.counted("flovyn_attempt_timeouts_total", "kind"), map[string]float64{"print": 1})
	s.compare("durations", s.counted("flovyn_task_duration_seconds", "kind"), map[string]float64{"embed": 2, "render": 2, "print": 1})
	s.compare("time used", s.counted("flovyn_task_time_used_ratio", "kind"), map[string]float64{"embed": 3, "render": 1})
	s.compare("lag", s.counted("flovyn_timeout_detection_lag_seconds", "queue"), map[string]float64{"default": 3, "idle": 1}) // with the attempt

	s.agentsOf(2, queue.Task{Kind: "render", Queue: "never"})
	if n := s.counted("flovyn_waits_unbounded", "mode")["all"]; n != 2 {
		t.Errorf("%v agents wait without a limit, want 2", n)
	}
}
