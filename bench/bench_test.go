package bench

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/httpapi"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) {
	holdIfAsked()
	redistest.Main(m)
}

// figures runs a measurement on a server of its own, and reports each figure as a benchmark.
func figures(b *testing.B, measure func(context.Context, redis.UniversalClient) (Report, error)) {
	r, err := measure(b.Context(), server(b))
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range r.Figures {
		b.Run(f.Name, func(b *testing.B) {
			b.ReportMetric(f.Value, strings.ReplaceAll(f.Unit, " ", "_"))
			b.ReportMetric(0, "ns/op") // nothing runs in the loop: it is not printed
		})
	}
}

// server starts a Redis and returns a client such as the command uses.
func server(t testing.TB) redis.UniversalClient {
	rdb, err := queue.Connect("redis://" + redistest.Start(t).Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// On a busy machine a worker fetches fewer tasks at a time, and needs more commands for each. A limit that is exceeded three times is
// exceeded for another reason.
func TestCountsAreWithinTheirLimits(t *testing.T) {
	var exceeded []string
	for range 3 {
		r, err := Counts(context.Background(), server(t))
		if err != nil {
			t.Fatal(err)
		}
		if exceeded = Gate(r); len(exceeded) == 0 {
			return
		}
	}
	for _, line := range exceeded {
		t.Error(line)
	}
}

func TestGateNamesWhatIsExceededOrUnknown(t *testing.T) {
	r := Report{Figures: []Figure{{"enqueue one: round trips", 1.5, "a task"}}}
	lines := Gate(r)
	if len(lines) < 2 || !strings.Contains(lines[0], "enqueue one: round trips: 1.5 a task, the limit is 1") {
		t.Errorf("Gate = %q", lines)
	}
	if !strings.Contains(strings.Join(lines, "\n"), "is not a figure of this benchmark") {
		t.Errorf("Gate = %q, want an error for a limit without a figure", lines)
	}
	if strings.Contains(strings.Join(lines, ""), `\n`) {
		t.Errorf("Gate = %q, want limits without the ends of their lines", lines)
	}
}

// Each benchmark runs with a small load. Its figures must be above 0. A usual run draws half of them.
func TestBenchmarksMeasure(t *testing.T) {
	ctx := context.Background()
	rdb := server(t)
	for _, test := range []struct {
		figures []string
		measure func() (Report, error)
	}{
		{[]string{"enqueue one by one", "enqueue in lists", "drain", "idle dispatch p99"},
			func() (Report, error) { return Throughput(ctx, rdb, 500, 1, false) }},
		{[]string{"enqueue over HTTP", "enqueue over HTTP p99", "enqueue by the Go client", "get over HTTP", "get by the Go client", "a result over HTTP p50",
			"a result by the Go client p50"},
			func() (Report, error) {
				return HTTP(ctx, rdb, HTTPConfig{Serve: serveHere(t, rdb), Tasks: 100, Waiting: 20})
			}},
		{[]string{"drain"}, func() (Report, error) { return Throughput(ctx, rdb, 500, 4, true) }},
		{[]string{"detection lag p50", "detection lag max"},
			func() (Report, error) { return Detect(ctx, rdb, 100, 300, 300*time.Millisecond) }},
		{[]string{"all of one ms max"}, func() (Report, error) { return SameMillisecond(ctx, rdb, 500) }},
		{[]string{"memory a pending task", "memory a running task", "memory a completed task", "memory a completed task with its event",
			"append-only file for enqueue", "append-only file for fetch", "append-only file for settle"}, func() (Report, error) { return Memory(ctx, rdb, 2000) }},
		{[]string{"fetch 500", "time out 250, each in a queue of its own", "look at all queues", "wake by the first of many, cancel the losers"},
			func() (Report, error) { return measureLongest(ctx, rdb, 1000, 20, 300) }},
		{[]string{"beside: plain tasks drained", "agents", "their children", "time of Redis an agent", "time of the worker an agent"},
			func() (Report, error) { return AgentRate(ctx, rdb, 20, 10, 10) }},
		{[]string{"wake lag, idle p99"}, func() (Report, error) { return WakeLag(ctx, rdb, 20, 3, 0) }},
		{[]string{"wake lag beside 500 tasks/s p50", "worked off beside it"},
			func() (Report, error) { return WakeLag(ctx, rdb, 100, 3, 500) }},
		{[]string{"FUNCTION LOAD", "used_memory_vm_functions", "curfew_enqueue, 1 connection", "HSET and ZADD, 16 connections",
			"curfew_enqueue_many of 100, 16 connections", "curfew_fetch and curfew_settle, 16 connections"},
			func() (Report, error) { return Functions(ctx, rdb.(*redis.Client), 100) }},
		{[]string{"chain of 10, 10 at once", "chain of 10: commands", "chain of 10: time of Redis", "chain of 10: end of a node to the next handler p99",
			"chain of 10 by hand, 10 at once", "fan-out of 10, 10 at once", "fan-out of 10: end of a node to the next handler p50",
			"fan-out of 10 by hand: end of a node to the next handler p50", "chain of 30: all of it", "chain of 30: memory of all keys at its last node", "chain of 20, 10 at once"},
			func() (Report, error) {
				return Flows(ctx, rdb, FlowsConfig{Runs: 10, Lags: 3, Chain: 30, Concurrency: 20})
			}},
		{[]string{"empty: time of a scrape", "full: text of a scrape", "full: reading the figures alone"}, func() (Report, error) {
			return measureScrapes(ctx, rdb, scraped{tasks: 1000, queues: 5, kinds: 10, spread: 2})
		}},
		{[]string{"agent with 10 children: commands"}, func() (Report, error) { return AgentCost(ctx, rdb, 20, 10) }},
		{[]string{"waiting agent with 10 members: its record and payload", "waiting agent with 10 members: its wait",
			"waiting agent with 10 members: its list of children", "waiting agent with 10 members: its members' records and payloads",
			"waiting agent with 10 members: entries in sets of the namespace", "waiting agent with 10 members: all of used_memory"},
			func() (Report, error) { return AgentMemory(ctx, rdb, 200, 10) }},
	} {
		if !size.Drawn(strings.Join(test.figures, ", "), 2) {
			continue
		}
		r, err := test.measure()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range test.figures {
			if r.Value(name) <= 0 {
				t.Errorf("%s: %s is %v", r.Bench, name, r.Value(name))
			}
		}
		t.Log(r)
	}
	if aof := rdb.ConfigGet(ctx, "appendonly").Val()["appendonly"]; aof != "no" {
		t.Errorf("after Memory the server's appendonly is %q, want no", aof)
	}
}

// serveHere serves the API from this process.
func serveHere(t *testing.T, rdb redis.UniversalClient) func(context.Context) (string, *os.Process, error) {
	return func(ctx context.Context) (string, *os.Process, error) {
		q, err := queue.Open(ctx, rdb, queue.Config{Namespace: "bench"})
		if err != nil {
			return "", nil, err
		}
		api, err := httpapi.New(httpapi.Config{Queues: []*queue.Queue{q}, Public: true, Silence: time.Minute})
		if err != nil {
			return "", nil, err
		}
		web := httptest.NewServer(api)
		t.Cleanup(web.Close)
		self, err := os.FindProcess(os.Getpid())
		return web.URL, self, err
	}
}

func TestMedianIsTakenFigureByFigure(t *testing.T) {
	runs := []Report{
		{Figures: []Figure{{"a", 3, ""}, {"b", 1, ""}}},
		{Figures: []Figure{{"a", 1, ""}, {"b", 9, ""}}},
		{Figures: []Figure{{"a", 2, ""}, {"b", 2, ""}}},
	}
	if m := Median(runs); m.Value("a") != 2 || m.Value("b") != 2 {
		t.Errorf("Median = %v, want a 2 and b 2", m)
	}
	if m := Median(runs[:2]); m.Value("a") != 3 || m.Value("c") != 0 {
		t.Errorf("Median = %v, want a 3: of two runs the larger, and no c", m)
	}
}

// What failed says why, also if no call returned an error.
func TestMeasurementsThatFailSayWhy(t *testing.T) {
	ctx := t.Context()
	q, err := open(ctx, server(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	interrupted, interrupt := context.WithCancel(ctx)
	interrupt()
	w := worker.New(q, worker.Config{})
	agentwait.Handle(w, "agent", func(*agentwait.Agent, []byte) ([]byte, error) { return nil, errors.New("no such page") })
	for _, row := range []struct {
		claim, want string
		fail        func() error
	}{
		{"there is no task to claim", "fetch 0: got 0 of 1 tasks", func() error { return workOneByOne(ctx, q, 1) }},
		{"there is no task to run", "no task is ready", func() error { return completeOne(ctx, w) }},
		{"a task fails", `the task did not complete: "fail", no such page`, func() error {
			if _, err := q.Enqueue(ctx, queue.Task{Kind: "agent"}); err != nil {
				t.Fatal(err)
			}
			return completeOne(ctx, w)
		}},
		{"a worker process writes something else", `its first line is "hello\n", want "began"; stderr: `, func() error {
			return hold(ctx, exec.Command("echo", "hello"))
		}},
		{"a worker process ends", `its first line is "", want "began"; stderr: ` + "\nEOF", func() error {
			return hold(ctx, exec.Command("true"))
		}},
		{"the measurement is interrupted", "the worker stopped: context canceled", func() error {
			_, err := runUntil(interrupted, w, nil)
			return err
		}},
	} {
		if err := row.fail(); err == nil || err.Error() != row.want {
			t.Errorf("%s: %v, want %s", row.claim, err, row.want)
		}
	}
}

// A month in a million parts is more ns than a duration can have, if the number of a part is multiplied first.
func TestEventsAreSpreadOverALongSpan(t *testing.T) {
	const n, span = 1_000_000, 30 * 24 * time.Hour
	for i, want := range map[int]time.Duration{0: 0, 1: span / n, n / 2: span / 2, n: span} {
		if got := startOf(i, n, span); got != want {
			t.Errorf("event %d begins after %v, want %v", i, got, want)
		}
	}
}
