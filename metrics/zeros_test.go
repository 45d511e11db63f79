package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// report makes a worker live that reports what it does.
func report(t *testing.T, q *queue.Queue, id, about string) {
	t.Helper()
	if _, err := claim.Of(q).Heartbeat(t.Context(), 0, id, time.Minute, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := claim.Of(q).Describe(t.Context(), 0, id, queue.WorkerRunning, about); err != nil {
		t.Fatal(err)
	}
}

// series returns the time series of a scrape with their values, by name and labels: those of counters, and the numbers of values of histograms.
func series(all map[string]*dto.MetricFamily) map[string]float64 {
	found := map[string]float64{}
	for name, family := range all {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "namespace" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			if family.GetType() != dto.MetricType_GAUGE {
				found[name+" "+strings.Join(labels, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return found
}

// Prometheus sees no increase in the first value of a series. So each series that rises by a first timeout was there before, with 0:
// those of a kind that only its worker knows, too.
func TestTheFirstTimeoutIsAnIncrease(t *testing.T) {
	name := redistest.Namespace(t)
	q, namespace := exporter(t, name, metrics.Config{CacheFor: time.Nanosecond})
	report(t, q, "w1", `{"queues":{"mail":1},"kinds":["send"]}`)
	for round, kind := range []string{"send", "known"} {
		if kind == "known" {
			queuetest.Enqueue(t, q, queue.Task{Kind: kind, Queue: "mail", Timeout: time.Hour})
			await.Until(t, "the exporter has read the task", func() bool {
				return value(gather(t, namespace), "curfew_tasks_enqueued_total", "kind", kind) == 1
			})
		}
		before := series(gather(t, namespace))
		id := queuetest.Enqueue(t, q, queue.Task{Kind: kind, Queue: "mail", Timeout: time.Millisecond}).ID
		if r, err := q.Result(t.Context(), id); err == nil {
			t.Fatalf("the task has the result %q, want a timeout", r)
		}
		await.Until(t, "the exporter has read the timeout", func() bool {
			return value(gather(t, namespace), "curfew_task_timeouts_total", "kind", kind) == 1
		})
		var rose []string
		for one, n := range series(gather(t, namespace)) {
			was, there := before[one]
			if n == was {
				continue
			}
			rose = append(rose, strings.Fields(one)[0])
			if histogram := strings.HasPrefix(one, "curfew_task_duration") || strings.HasPrefix(one, "curfew_task_wait") || strings.HasPrefix(one, "curfew_task_time_used"); !there && !histogram {
				t.Errorf("round %d: %s is %v after the first timeout, and was not there before", round, one, n)
			}
		}
		for _, must := range []string{"curfew_tasks_enqueued_total", "curfew_tasks_finished_total", "curfew_task_timeouts_total", "curfew_timeout_detection_lag_seconds"} {
			if !slices.Contains(rose, must) {
				t.Errorf("round %d: a timeout has changed %q, want %s in them", round, rose, must)
			}
		}
	}
}

// A worker can report many kinds and queues. The number of exported pairs without a task is limited, and they do not take labels from pairs
// that have tasks.
func TestPairsWithoutATaskAreBounded(t *testing.T) {
	name := redistest.Namespace(t)
	q, small := exporter(t, name, metrics.Config{MaxKinds: 2, MaxQueues: 2, MaxPairs: 2})
	_, whole := exporter(t, name, metrics.Config{})
	var queues, kinds []string
	for i := range 40 {
		queues, kinds = append(queues, fmt.Sprintf(`"a%02d":1`, i)), append(kinds, fmt.Sprintf(`"a%02d"`, i))
	}
	report(t, q, "w1", `{"queues":{`+strings.Join(queues, ",")+`},"kinds":[`+strings.Join(kinds, ",")+`]}`)
	for _, one := range []string{"y", "z"} {
		cancelled(t, q, []queue.Task{{Kind: one, Queue: one}})
	}
	const finished = "curfew_tasks_finished_total"
	pairs := 0
	for _, m := range gather(t, whole)[finished].GetMetric() {
		if strings.Contains(m.String(), `"COMPLETED"`) {
			pairs++
		}
	}
	if pairs != 200+2 {
		t.Errorf("%d pairs are exported, want 200 without a task and 2 with one", pairs)
	}
	if labels := labelsOf(gather(t, small)[finished], "kind"); !slices.Equal(labels, []string{metrics.Other, "y", "z"}) {
		t.Errorf("the kinds are %v, want those with tasks and the others", labels)
	}
}

// What is not counted, or could not be read, is not 0.
func TestNoZeroStandsForWhatIsNotKnown(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	off := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Figures: "off"})
	damaged := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	queuetest.Busy(t, damaged, 3)
	key := damaged.Root(0) + ":figures:k0"
	if err := rdb.Rename(t.Context(), key, key+"-moved").Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(t.Context(), key, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for what, q := range map[string]*queue.Queue{"nothing is counted": off, "a kind cannot be read": damaged} {
		report(t, q, "w1", `{"queues":{"default":1},"kinds":["k0"]}`)
		all := gather(t, metrics.NewNamespace(q, metrics.Config{}))
		for _, name := range []string{"tasks_finished_total", "task_timeouts_total", "tasks_enqueued_total", "attempt_timeouts_total"} {
			if kinds := labelsOf(all["curfew_"+name], "kind"); slices.Contains(kinds, "k0") {
				t.Errorf("%s, and curfew_%s has the kinds %v", what, name, kinds)
			}
		}
		for _, name := range []string{"late_completions_total", "wait_wakeups_total", "timeout_detection_lag_seconds"} {
			if all["curfew_"+name] != nil {
				t.Errorf("%s, and curfew_%s is exported", what, name)
			}
		}
		if all["curfew_workers"] == nil {
			t.Errorf("%s, and the workers are not exported", what)
		}
	}
}

// Users choose names, and some choose the word for what has no label of its own.
func TestNoNameIsMistakenForTheOthers(t *testing.T) {
	name := redistest.Namespace(t)
	q, small := exporter(t, name, metrics.Config{MaxKinds: 4, MaxQueues: 4, MaxPairs: 16})
	hostile := []string{"other", "unknown", "others", "0"}
	for _, one := range hostile {
		cancelled(t, q, slices.Repeat([]queue.Task{{Kind: one, Queue: one}}, 8))
	}
	cancelled(t, q, []queue.Task{{Kind: "small", Queue: "small"}, {Kind: "tiny", Queue: "tiny"}})
	for _, invalid := range []queue.Task{{Kind: metrics.Other}, {Kind: "k", Queue: metrics.Other}} {
		if _, err := q.Enqueue(t.Context(), invalid); err == nil {
			t.Errorf("a task with the name %q was created, and that is the label of what has no label", metrics.Other)
		}
	}
	all := gather(t, small)
	for _, one := range hostile {
		for _, label := range []string{"queue", "kind"} {
			if n := value(all, "curfew_tasks_finished_total", label, one); n != 8 {
				t.Errorf("%v tasks of the %s %q have ended, want 8", n, label, one)
			}
		}
		if n := value(all, "curfew_tasks", "queue", one, "status", "dead"); n != 8 {
			t.Errorf("%v tasks of the queue %q are dead, want 8", n, one)
		}
	}
	for _, label := range []string{"queue", "kind"} {
		if n := value(all, "curfew_tasks_finished_total", label, metrics.Other); n != 2 {
			t.Errorf("%v tasks of a %s without a label of its own have ended, want 2", n, label)
		}
	}
}
