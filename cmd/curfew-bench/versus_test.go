package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// spread is the value of a System in a row of the JSON. It is nil if the System never does this.
type spread struct{ Median, Min, Max float64 }

// found decodes the JSON of a comparison, as a script would.
type found struct {
	Bench                string
	AOF                  bool
	Tasks, Runs, Running int
	OverMS               int `json:"over_ms"`
	Systems              []string
	Rows                 []foundRow
}

type foundRow struct {
	Name                        string
	Curfew, Asynq, Floor, Ratio *spread
}

// compareJSON runs a comparison, checks its exit code, and returns its JSON and its stderr.
func compareJSON(t *testing.T, want int, args ...string) (f found, errs string) {
	t.Helper()
	code, out, errs := run(t.Context(), append(args, "--vs", "asynq", "--runs", "1", "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &f); code != want || err != nil {
		t.Fatalf("curfew-bench %v: exit %d, %v, %s%s", args, code, err, out, errs)
	}
	if f.Runs != 1 || !slices.Equal(f.Systems, []string{"curfew", "asynq", "floor"}) || !strings.HasSuffix(f.Bench, " --vs asynq") {
		t.Errorf("curfew-bench %v found %+v", args, f)
	}
	return f, errs
}

// all checks that each row has a value of each System. The rows of never have none of asynq.
func (f found) all(t *testing.T, rows int, never ...string) {
	t.Helper()
	if len(f.Rows) != rows {
		t.Errorf("%s has %d rows, want %d", f.Bench, len(f.Rows), rows)
	}
	for _, row := range f.Rows {
		// A worker ends the context of a handler by its own estimate of Redis's clock. On a busy machine that is before the deadline.
		early := strings.HasPrefix(row.Name, "detect_handler_")
		measured := func(s *spread) bool { return s != nil && (s.Median > 0 || early) }
		if !measured(row.Curfew) || !measured(row.Floor) {
			t.Errorf("%s: %+v, %+v, want figures of Curfew and the floor", row.Name, row.Curfew, row.Floor)
		}
		if slices.Contains(never, row.Name) {
			if row.Asynq != nil || row.Ratio != nil {
				t.Errorf("%s: asynq has %+v and a ratio %+v, want null: it never does this", row.Name, row.Asynq, row.Ratio)
			}
			continue
		}
		if !measured(row.Asynq) || !measured(row.Ratio) {
			t.Errorf("%s: asynq has %+v and a ratio %+v, want both", row.Name, row.Asynq, row.Ratio)
		}
	}
}

func TestComparisonsWriteJSON(t *testing.T) {
	t.Run("throughput", func(t *testing.T) {
		t.Parallel()
		f, errs := compareJSON(t, app.ExitThreshold, "throughput", "--tasks", "500", "--servers", "2", "--aof", "--threshold", "drain>=100000000")
		if f.all(t, 5); f.Tasks != 500 || !f.AOF {
			t.Errorf("found %+v, want 500 tasks and an append-only file", f)
		}
		if !strings.Contains(errs, "and the limit is drain>=100000000\n") {
			t.Errorf("stderr is %q", errs)
		}
	})
	t.Run("dispatch", func(t *testing.T) {
		t.Parallel()
		f, _ := compareJSON(t, 0, "dispatch", "--tasks", "2", "--pause", "10ms")
		if f.all(t, 3); f.Tasks != 2 || f.AOF {
			t.Errorf("found %+v, want 2 tasks and no append-only file", f)
		}
	})
	t.Run("detect", func(t *testing.T) {
		t.Parallel()
		f, _ := compareJSON(t, 0, "detect", "--tasks", "100", "--running", "5", "--others", "50", "--over", "100ms")
		if f.all(t, 9, "detect_pending_p50", "detect_pending_p99", "detect_pending_max"); f.OverMS != 100 || f.Running != 5 {
			t.Errorf("found %+v, want a span of 100 ms and 5 running tasks", f)
		}
	})
}

func TestThresholdThatIsMissedEndsWithItsOwnExitCode(t *testing.T) {
	t.Parallel()
	code, out, errs := run(t.Context(), "dispatch", "--vs", "asynq", "--tasks", "1", "--pause", "1ms", "--runs", "1",
		"--threshold", "dispatch_p50<=1us", "--threshold", "dispatch_p99<=1h", "--threshold", "dispatch_max>=1000000x")
	if code != app.ExitThreshold || strings.Count(out, "missed: ") != 2 ||
		!strings.Contains(out, "and the limit is dispatch_p50<=1us\n") || !strings.Contains(out, "and the limit is dispatch_max>=1000000x\n") {
		t.Errorf("exit %d, stdout\n%s\nstderr %s", code, out, errs)
	}
	if table := strings.Index(out, "from Enqueue to its handler"); table < 0 || table > strings.Index(out, "missed: ") {
		t.Errorf("the table does not come first:\n%s", out)
	}
}

// A comparison can use another database of a server in use. It leaves no key there.
func TestGivenServerIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb, other := server.Client(t), databaseOf(t, server.Addr, 1)
	for _, key := range []string{"mine", "benchmark:{0}", "bench", "bench-floors", "other:{0}:task"} {
		other.Set(t.Context(), key, "work", 0)
	}
	rdb.Set(t.Context(), "asynq:queues", "work", 0)
	rdb.Set(t.Context(), "bench:{0}", "work", 0)
	before := redistest.Dump(t, rdb, "") + redistest.Dump(t, other, "")
	code, out, errs := run(t.Context(), "throughput", "--vs", "asynq", "--tasks", "100", "--runs", "1", "--redis", fmt.Sprintf("redis://%s/1", server.Addr))
	if code != 0 || !strings.Contains(out, "drain") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	if diff := redistest.Diff(before, redistest.Dump(t, rdb, "")+redistest.Dump(t, other, "")); diff != "" {
		t.Errorf("it changed\n%s", diff)
	}
}

func TestGivenServerInUseIsRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	for _, test := range []struct {
		claim, key string
		want       string
	}{
		{"the namespace exists", "bench:{0}", `it has keys of curfew, for example "bench:{0}"`},
		{"asynq has queues", "asynq:queues", `it has keys of asynq, for example "asynq:queues"`},
		{"an earlier run left keys", "bench-floor:line", "it has keys of floor"},
	} {
		rdb.FlushAll(t.Context())
		rdb.Set(t.Context(), test.key, "work", 0)
		code, out, errs := run(t.Context(), "detect", "--vs", "asynq", "--redis", "redis://"+server.Addr)
		if code != app.ExitUsage || out != "" || !strings.Contains(errs, test.want) || !strings.Contains(errs, "choose another name with --namespace, or another database or server") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", test.claim, code, out, errs)
		}
		if keys := rdb.Keys(t.Context(), "*").Val(); !slices.Equal(keys, []string{test.key}) {
			t.Errorf("%s: it left %q", test.claim, keys)
		}
	}
}

func databaseOf(t *testing.T, address string, db int) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: address, DB: db})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestServerThatDoesNotAnswerIsNamedInTheError(t *testing.T) {
	for _, command := range []string{"throughput", "dispatch", "detect", "recovery"} {
		code, out, errs := run(t.Context(), command, "--vs", "asynq", "--redis", "redis://:secret@127.0.0.1:1/0")
		if code != app.ExitUnreachable || out != "" || !strings.Contains(errs, "or give its address with --redis") || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", command, code, out, errs)
		}
	}
}
