package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// exporter opens a namespace with a client of its own, as another process does.
func exporter(t *testing.T, name string, config metrics.Config) (*queue.Queue, prometheus.Collector) {
	t.Helper()
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: name})
	config.CacheFor = time.Nanosecond
	return q, metrics.NewNamespace(q, config)
}

// Eight reapers look at the same tasks, and each timeout counts once.
func TestTwoExportersSeeEachTimeoutOnce(t *testing.T) {
	name := redistest.Namespace(t)
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: name, Partitions: 2})
	_, one := exporter(t, name, metrics.Config{})
	_, other := exporter(t, name, metrics.Config{})
	ctx, stop := context.WithCancel(t.Context())
	var reapers sync.WaitGroup
	for range 8 {
		of, _ := exporter(t, name, metrics.Config{})
		reapers.Go(func() {
			if err := reaper.New(of, reaper.Config{Batch: 10}).Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for range 10 {
		tasks := slices.Repeat([]queue.Task{{Kind: "k", Timeout: time.Millisecond}}, 100)
		if _, err := q.EnqueueAll(ctx, tasks); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, "all timeouts are counted", func() bool {
		return value(gather(t, one), "curfew_task_timeouts_total", "type", "execution") >= 1000
	})
	stop()
	reapers.Wait()
	largest := 0.0
	for _, exporter := range []prometheus.Collector{one, other} {
		all := gather(t, exporter)
		n := value(all, "curfew_task_timeouts_total", "queue", "default", "kind", "k")
		largest = max(largest, n)
		if n != 1000 || value(all, "curfew_tasks_finished_total", "status", "FAILED", "reason", "timeout") != 1000 {
			t.Errorf("an exporter has %v timeouts, and %v ends, want 1000", n, value(all, "curfew_tasks_finished_total"))
		}
		if lag := all["curfew_timeout_detection_lag_seconds"].GetMetric()[0].GetHistogram(); lag.GetSampleCount() != 1000 {
			t.Errorf("the lag has %d values, want 1000", lag.GetSampleCount())
		}
	}
	if largest != 1000 {
		t.Errorf("the max over the exporters is %v, want 1000", largest)
	}
	if a, b := totals(t, one), totals(t, other); a != b {
		t.Errorf("the exporters differ:\n%s\n%s", a, b)
	}
}

// totals returns the text of the cumulative metrics of a namespace.
func totals(t *testing.T, of prometheus.Collector) string {
	t.Helper()
	var kept []string
	for line := range strings.Lines(scrape(t, "", of)) {
		for _, m := range metrics.All() {
			if m.Type != metrics.Gauge && strings.HasPrefix(line, "curfew_"+m.Name) {
				kept = append(kept, line)
			}
		}
	}
	return strings.Join(kept, "")
}

// A process that dies takes no count with it: the child process ends tasks and is killed before it can say anything.
func TestAKilledProcessChangesNoTotal(t *testing.T) {
	server := redistest.Shared(t)
	if name := os.Getenv("METRICS_TEST_CHILD"); name != "" {
		q := queuetest.Open(t, redis.NewClient(&redis.Options{Addr: os.Getenv("METRICS_TEST_REDIS"), ContextTimeoutEnabled: true}), queue.Config{Namespace: name})
		gather(t, metrics.NewNamespace(q, metrics.Config{}), metrics.NewProcess(q, metrics.Config{}))
		queuetest.Busy(t, q, 7)
		os.Stdout.WriteString("busy\n")
		select {} // until it is killed
	}
	name := redistest.Namespace(t)
	q, collector := exporter(t, name, metrics.Config{})
	queuetest.Busy(t, q, 5)
	for round := 1; round <= 2; round++ {
		child := exec.Command(os.Args[0], "-test.run", "^TestAKilledProcessChangesNoTotal$")
		child.Env = append(os.Environ(), "METRICS_TEST_CHILD="+name, "METRICS_TEST_REDIS="+server.Addr)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		word := make([]byte, 5)
		_, err = out.Read(word)
		child.Process.Kill()
		child.Wait()
		if err != nil || string(word) != "busy\n" {
			t.Fatalf("the child process said %q, %v", word, err)
		}
		if n := value(gather(t, collector), "curfew_tasks_finished_total"); n != float64(5+7*round) {
			t.Errorf("after %d killed processes %v tasks have ended, want %d", round, n, 5+7*round)
		}
	}
}

func TestANamespaceWithoutFiguresHasOnlyItsSizes(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: "off", Figures: "off"})
		queuetest.Busy(t, q, 3)
		queuetest.Enqueue(t, q, queue.Task{Timeout: time.Hour})
		all := gather(t, metrics.NewNamespace(q, metrics.Config{}))
		if value(all, "curfew_up") != 1 || value(all, "curfew_tasks", "status", "ready") != 1 || value(all, "curfew_deadlines") != 1 {
			t.Errorf("up is %v with %v tasks and %v deadlines, want 1 of each", value(all, "curfew_up"), value(all, "curfew_tasks"), value(all, "curfew_deadlines"))
		}
		for _, name := range []string{"tasks_finished_total", "task_duration_seconds", "tasks_enqueued_total"} {
			if all["curfew_"+name] != nil {
				t.Errorf("curfew_%s is exported, and nothing counts it", name)
			}
		}
	})
}

// labelsOf returns the values of a label.
func labelsOf(f *dto.MetricFamily, label string) []string {
	found := map[string]bool{}
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == label {
				found[l.GetValue()] = true
			}
		}
	}
	var list []string
	for name := range found {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func TestKindsQueuesAndPairsAreCapped(t *testing.T) {
	name := redistest.Namespace(t)
	q, small := exporter(t, name, metrics.Config{MaxKinds: 3, MaxQueues: 2, MaxPairs: 4})
	_, again := exporter(t, name, metrics.Config{MaxKinds: 3, MaxQueues: 2, MaxPairs: 4})
	_, whole := exporter(t, name, metrics.Config{})
	for i := range 6 { // k0 and q0 have the most tasks
		for j := range 4 {
			tasks := slices.Repeat([]queue.Task{{Kind: fmt.Sprint("k", i), Queue: fmt.Sprint("q", j), Timeout: time.Hour}}, 1<<(6-i)<<(4-j))
			for some := range slices.Chunk(tasks, 500) {
				cancelled(t, q, some)
			}
		}
	}
	got, all := gather(t, small), gather(t, whole)
	const finished = "curfew_tasks_finished_total"
	if queues, kinds := labelsOf(got[finished], "queue"), labelsOf(got[finished], "kind"); !slices.Equal(queues, []string{metrics.Other, "q0", "q1"}) || !slices.Equal(kinds, []string{metrics.Other, "k0", "k1", "k2"}) {
		t.Errorf("the queues are %v and the kinds %v, want the largest 2 and 3, and the others", queues, kinds)
	}
	if labels := labelsOf(got["curfew_tasks"], "queue"); !slices.Equal(labels, []string{metrics.Other, "q0", "q1"}) {
		t.Errorf("the queues of curfew_tasks are %v", labels)
	}
	pairs := 0
	for _, m := range got[finished].GetMetric() {
		text := m.String()
		if strings.Contains(text, `"COMPLETED"`) && !strings.Contains(text, `"`+metrics.Other+`"`) {
			pairs++
		}
	}
	if pairs != 4 {
		t.Errorf("%d pairs have their own time series, want 4", pairs)
	}
	for _, metric := range []string{finished, "curfew_tasks"} {
		if a, b := value(got, metric), value(all, metric); a != b {
			t.Errorf("%s adds up to %v, and to %v without caps", metric, a, b)
		}
	}
	if len(labelsOf(all[finished], "kind")) != 6 {
		t.Errorf("the kinds without caps are %v, want all 6", labelsOf(all[finished], "kind"))
	}
	if a, b := totals(t, small), totals(t, again); a != b {
		t.Errorf("two exporters differ:\n%s\n%s", a, b)
	}
	cancelled(t, q, slices.Repeat([]queue.Task{{Kind: "k5", Queue: "q3"}}, 3)) // not enough to change a magnitude
	if labels := labelsOf(gather(t, small)[finished], "kind"); !slices.Equal(labels, []string{metrics.Other, "k0", "k1", "k2"}) {
		t.Errorf("three more tasks have changed the kinds to %v", labels)
	}
}

func cancelled(t *testing.T, q *queue.Queue, tasks []queue.Task) {
	t.Helper()
	receipts, err := q.EnqueueAll(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	if _, err := q.CancelAll(t.Context(), ids, ""); err != nil {
		t.Fatal(err)
	}
}

// Names that Curfew gives are harmless. A record can be damaged, and then a name can be anything.
func TestDamagedNamesDoNotBreakAScrape(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := t.Context(), queuetest.Open(t, rdb, queue.Config{Namespace: "garbage"})
		for _, kind := range []string{"\xff", "\xfe", "a\"b\\\n", strings.Repeat("x", 100_000), "", "\x00"} {
			if err := errors.Join(rdb.SAdd(ctx, q.Root(0)+":kinds", kind).Err(),
				rdb.HSet(ctx, q.Root(0)+":figures:"+kind, "\xfa\xff ended FAILED timeout \xff \xfe", 2, "q ended \xff \xff", "x", "q ended COMPLETED", -7,
					"q duration more", "9223372036854775807", "q duration sum", "1e308", "q lag \xff 5", 3, " ", 1, "q late", math.MaxInt64).Err()); err != nil {
				t.Fatal(err)
			}
		}
		rdb.SAdd(ctx, q.Root(0)+":queues", "\xff", "\xfe", "{}\n")
		rdb.HSet(ctx, q.Root(0)+":queue:\xff", "enqueued", "many", "paused", 1)
		text := scrape(t, "", metrics.NewNamespace(q, metrics.Config{}))
		if !strings.Contains(text, "curfew_up{") || !strings.Contains(text, "\uFFFD") || bytes.Contains([]byte(text), []byte{0xff}) {
			t.Errorf("a scrape of damaged names is %.2000s", text)
		}
	})
}

// A timeout of any layer has a value in the histogram of lags, under the name of its layer.
func TestATimeoutOfEachLayerHasItsLag(t *testing.T) {
	c := curfewtest.New(t, curfewtest.Config{Start: testclock.Start})
	agentwait.Handle(c.Worker, "ask", func(a *agentwait.Agent, policy string) (string, error) {
		return agentwait.Await(a.With(agentwait.Wait{Limit: time.Second, Proceed: policy == "proceed"}), agentwait.Signal[string](a, "answer"))
	})
	agentwait.Handle(c.Worker, "run", func(a *agentwait.Agent, _ string) (string, error) {
		return agentwait.Run[string](a, "", queue.Task{Kind: "step", Queue: "nobody"})
	})
	worker.Handle(c.Worker, "slow", func(ctx context.Context, _ string) (string, error) {
		c.Advance(2 * time.Second)
		return "", ctx.Err()
	})
	if _, err := c.Queue.Pause(t.Context(), "nobody"); err != nil {
		t.Fatal(err)
	}
	for _, task := range []queue.Task{
		{Kind: "ask", Payload: []byte(`"fail"`)},
		{Kind: "ask", Payload: []byte(`"proceed"`)},
		{Kind: "run", Timeout: time.Second, OnDeadline: queue.DeadlineCancelAll},
		{Kind: "slow", AttemptTimeout: time.Second, OnTimeout: queue.OnTimeoutRetry, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}},
		{Kind: "slow", Queue: "nobody", QueueTimeout: time.Second},
	} {
		c.Enqueue(task)
		c.Drain()
	}
	c.Advance(5 * time.Second)
	c.Drain()
	all := gather(t, metrics.NewNamespace(c.Queue, metrics.Config{}))
	lags := map[string]uint64{}
	for _, m := range all["curfew_timeout_detection_lag_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "type" {
				lags[l.GetValue()] += m.GetHistogram().GetSampleCount()
			}
		}
	}
	if want := "map[attempt:2 execution:1 queue:1 synchronization:2 workflow:1]"; fmt.Sprint(lags) != want {
		t.Errorf("the histogram of lags has the values %v, want %s", lags, want)
	}
	for _, policy := range []string{"fail", "proceed_with_available"} {
		if n := value(all, "curfew_wait_timeouts_total", "kind", "ask", "queue", "default", "policy", policy); n != 1 {
			t.Errorf("%v waits with the policy %s timed out, want 1", n, policy)
		}
	}
	if n := value(all, "curfew_wait_timeouts_total"); n != 2 {
		t.Errorf("%v waits timed out, want 2", n)
	}
}
