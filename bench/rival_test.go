package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// toy is a job queue of one Redis list, defined outside of package bench. It has no call for many
// tasks and no deadlines, and loses the tasks of a worker that dies.
type toy struct {
	rdb   *redis.Client
	key   string
	tasks [][]byte
}

func (*toy) Name() string                        { return "toy" }
func (*toy) Version() string                     { return "v1" }
func (*toy) Prefixes(namespace string) []string  { return []string{namespace + "-toy"} }
func (t *toy) Close() error                      { return t.rdb.Close() }
func (t *toy) Prepare(payloads [][]byte) (n int) { t.tasks = payloads; return len(payloads) }

func (t *toy) Open(_ context.Context, at bench.Place) error {
	options, err := redis.ParseURL(at.URL)
	if err == nil {
		t.rdb, t.key = redis.NewClient(options), at.Namespace+"-toy"
	}
	return err
}

func (t *toy) Enqueue(ctx context.Context, i int) error {
	return t.rdb.LPush(ctx, t.key, t.tasks[i]).Err()
}

func (t *toy) Work(ctx context.Context, w bench.Workers, handled func()) (bench.Crew, error) {
	ctx, stop := context.WithCancel(ctx)
	ended, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(ended)
		for {
			taken, err := t.rdb.BRPop(context.WithoutCancel(ctx), time.Second, t.key).Result()
			if ctx.Err() != nil {
				return // woken by stop
			}
			if err != nil && !errors.Is(err, redis.Nil) {
				failed <- err
				return
			}
			if len(taken) > 0 {
				handled()
			}
		}
	}()
	return bench.Crew{Failed: failed, Stop: func() error {
		stop()
		err := t.rdb.LPush(context.WithoutCancel(ctx), t.key, "stop").Err()
		<-ended
		return err
	}}, nil
}

func (t *toy) Check(ctx context.Context, n int) error {
	left, err := t.rdb.LLen(ctx, t.key).Result()
	if err == nil && left > 0 {
		err = fmt.Errorf("%d of %d tasks are left", left, n)
	}
	return err
}

// against compares Curfew with the toy and the floor, on a new server.
func against(t *testing.T, trial bench.Trial) bench.Comparison {
	t.Helper()
	server := redistest.Start(t)
	rdb := server.Client(t)
	rdb.Set(t.Context(), "left", "x", 0)
	c := bench.CompareConfig{Runs: 1, Place: bench.Place{URL: "redis://" + server.Addr}}
	found, err := bench.Compare(t.Context(), trial, c, bench.Curfew(0), &toy{}, bench.Floor())
	if err != nil {
		t.Fatal(err)
	}
	if n := rdb.Exists(t.Context(), "left").Val(); n != 0 {
		t.Error("a server that is not given still has its old key, want it empty before each turn")
	}
	return found
}

func TestAnotherSystemCanBeAddedFromOutside(t *testing.T) {
	t.Parallel()
	for _, trial := range []bench.Trial{
		bench.ThroughputTrial(bench.ThroughputLoad{Tasks: 200}),
		bench.DispatchTrial(bench.DispatchLoad{Tasks: 3, Pause: time.Millisecond}),
	} {
		found := against(t, trial)
		if found.Against != "toy v1" || !strings.HasSuffix(found.Bench, " --vs toy") {
			t.Errorf("the comparison is %q against %q, want the toy", found.Bench, found.Against)
		}
		for _, row := range found.Rows {
			if row.Of["curfew"].Median <= 0 || row.Of["toy"].Median <= 0 || row.Of["floor"].Median <= 0 || row.Ratios["toy"].Median <= 0 {
				t.Errorf("%s: %+v, want figures of all three and a ratio", row.Name, row)
			}
		}
	}
}

func TestASystemWithoutAnInterfaceNeverDoesIt(t *testing.T) {
	t.Parallel()
	found := against(t, bench.DetectTrial(bench.DeadlineLoad{Pending: 50, Running: 3, Others: 10, Over: 50 * time.Millisecond}))
	var table strings.Builder
	if err := found.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(table.String(), "  never  "); n != len(found.Rows) {
		t.Errorf("the table has %d times never, want %d:\n%s", n, len(found.Rows), table.String())
	}
	text, err := json.Marshal(found)
	if n := strings.Count(string(text), `"toy":null,`); err != nil || n != len(found.Rows) {
		t.Errorf("the JSON has %d times null (error %v), want %d:\n%s", n, err, len(found.Rows), text)
	}
}

func TestSystemsWithTheSameNameAreRefused(t *testing.T) {
	_, err := bench.Compare(t.Context(), bench.DispatchTrial(bench.DispatchLoad{}), bench.CompareConfig{}, &toy{}, &toy{})
	if err == nil || !strings.Contains(err.Error(), `"toy" must be`) {
		t.Errorf("Compare = %v", err)
	}
}

func TestCompareReturnsErrUnreachable(t *testing.T) {
	c := bench.CompareConfig{Place: bench.Place{URL: "redis://:secret@127.0.0.1:1"}}
	_, err := bench.Compare(t.Context(), bench.DispatchTrial(bench.DispatchLoad{}), c, &toy{}, bench.Floor())
	if !errors.Is(err, bench.ErrUnreachable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("Compare = %v, want ErrUnreachable without the password", err)
	}
}
