package queue_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// inMinutes are defaults with a timeout of n minutes.
func inMinutes(n int) queue.Defaults { return queue.Defaults{Timeout: time.Duration(n) * time.Minute} }

// timeouts enqueues tasks of a kind until every partition has one, and returns how long they have, each
// different one once.
func timeouts(t *testing.T, q *queue.Queue, kind string) (all []time.Duration) {
	t.Helper()
	for range q.Partitions() {
		r, err := q.Get(context.Background(), queuetest.Enqueue(t, q, queue.Task{Kind: kind}).ID)
		if err != nil {
			t.Fatal(err)
		}
		span := time.Duration(0)
		if !r.Deadline.IsZero() {
			span = r.Deadline.Sub(r.CreatedAt)
		}
		if !slices.Contains(all, span) {
			all = append(all, span)
		}
	}
	return all
}

// another opens the namespace as another program does, whose log is text.
func another(t *testing.T, q *queue.Queue) (other *queue.Queue, text *bytes.Buffer) {
	text = &bytes.Buffer{}
	return queuetest.Open(t, q.Client(), queue.Config{Namespace: q.Namespace(), Logger: slog.New(slog.NewTextHandler(text, nil))}), text
}

// Whoever starts first, the first task of a kind has its defaults in every partition. Those of a worker
// count more than those of a producer.
func TestDefaultsOfAProducerAndAWorker(t *testing.T) {
	ctx := context.Background()
	for _, row := range []struct {
		claim  string
		starts []string // who starts, in this order
		want   time.Duration
		warns  bool
	}{
		{"a producer alone", []string{"producer"}, time.Minute, false},
		{"a producer and then the same one", []string{"producer", "producer"}, time.Minute, false},
		{"a producer and then another one: the first counts", []string{"producer", "other producer"}, time.Minute, true},
		{"a producer and then a worker: the worker counts", []string{"producer", "worker"}, 2 * time.Minute, false},
		{"a worker and then a producer: the worker counts", []string{"worker", "producer"}, 2 * time.Minute, true},
		{"two workers: the last one counts", []string{"worker", "other worker"}, 4 * time.Minute, false},
	} {
		t.Run(row.claim, func(t *testing.T) {
			queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
				logs := ""
				for _, who := range row.starts {
					program, text := another(t, q)
					var err error
					switch who {
					case "producer":
						err = program.EnsureKind(ctx, "k", inMinutes(1))
					case "other producer":
						err = program.EnsureKind(ctx, "k", inMinutes(3))
					case "worker":
						err = program.DefineKind(ctx, "k", inMinutes(2))
					case "other worker":
						err = program.DefineKind(ctx, "k", inMinutes(4))
					}
					if err != nil {
						t.Fatal(err)
					}
					logs += text.String()
				}
				if got := timeouts(t, q, "k"); !slices.Equal(got, []time.Duration{row.want}) {
					t.Errorf("tasks have %v, want %v", got, row.want)
				}
				if warned := strings.Count(logs, "other defaults for a kind"); warned != map[bool]int{true: 1}[row.warns] {
					t.Errorf("it warned %d times, want %v: %s", warned, row.warns, logs)
				}
			})
		})
	}
}

func TestNoDefaultsAreStoredForAKindWithout(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		if err := q.EnsureKind(context.Background(), "k", queue.Defaults{}); err != nil {
			t.Fatal(err)
		}
		if kinds, err := q.Kinds(context.Background()); err != nil || len(kinds) != 0 {
			t.Errorf("Kinds = %v, %v, want none", kinds, err)
		}
	})
}

// defines counts the calls that define a kind.
type defines struct{ n atomic.Int64 }

func (d *defines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *defines) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if handle, _ := cmd.Args()[min(1, len(cmd.Args())-1)].(string); strings.HasSuffix(handle, "_define") {
			d.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (d *defines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAProgramEnsuresAKindOnce(t *testing.T) {
	rdb, ctx, calls := redistest.Shared(t).Client(t), context.Background(), &defines{}
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: 4})
	rdb.AddHook(calls)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if err := q.EnsureKind(ctx, "k", inMinutes(1)); err != nil {
				t.Error(err)
			}
			if got := timeouts(t, q, "k"); !slices.Equal(got, []time.Duration{time.Minute}) {
				t.Errorf("tasks have %v", got)
			}
		})
	}
	group.Wait()
	if n := calls.n.Load(); n != 4 {
		t.Errorf("%d calls were made, want one for each partition", n)
	}
	if err := errors.Join(q.DefineKind(ctx, "other", inMinutes(1)), q.EnsureKind(ctx, "other", inMinutes(1))); err != nil || calls.n.Load() != 8 {
		t.Errorf("%v after %d calls, want none after DefineKind", err, calls.n.Load())
	}
}

func TestEnsureKindRefusesBadInput(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		before := redistest.Dump(t, rdb, "curfew:")
		for _, row := range []struct {
			claim, kind string
			d           queue.Defaults
		}{
			{"an empty kind", "", inMinutes(1)},
			{"a kind with a space", "a b", inMinutes(1)},
			{"an empty kind without defaults", "", queue.Defaults{}},
			{"a negative timeout", "k", queue.Defaults{Timeout: -1}},
			{"a limit in line that is None", "k", queue.Defaults{QueueTimeout: queue.None}},
			{"an expression without retries", "k", queue.Defaults{Retry: "true"}},
			{"a warning without a timeout", "k", queue.Defaults{WarnAt: 0.5}},
		} {
			if err := q.EnsureKind(context.Background(), row.kind, row.d); !errors.Is(err, refusal.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", row.claim, err)
			}
		}
		if after := redistest.Dump(t, rdb, "curfew:"); after != before {
			t.Errorf("it changed something:\n%s", redistest.Diff(before, after))
		}
	})
}

// While Redis is away a caller waits as long as its context says, and none keeps another from trying.
func TestEnsureKindWhileRedisIsAway(t *testing.T) {
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	rdb, err := queue.Connect("redis://" + proxy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	proxy.Partition(true)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := q.EnsureKind(ctx, "k", inMinutes(1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that ends: %v, want its error", err)
	}
	proxy.Partition(false)
	if err := q.EnsureKind(context.Background(), "k", inMinutes(1)); err != nil {
		t.Fatal(err)
	}
	if got := timeouts(t, q, "k"); !slices.Equal(got, []time.Duration{time.Minute}) {
		t.Errorf("tasks have %v, want a minute", got)
	}
}

// An error is not kept: the next call tries again.
func TestEnsureKindAfterAnError(t *testing.T) {
	rdb, ctx := redistest.Shared(t).Client(t), context.Background()
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	rdb.Rename(ctx, q.Root(0), q.Root(0)+":away")
	rdb.Set(ctx, q.Root(0), "text", 0)
	if err := q.EnsureKind(ctx, "k", inMinutes(1)); err == nil {
		t.Fatal("the root is a string, and EnsureKind returned no error")
	}
	rdb.Rename(ctx, q.Root(0)+":away", q.Root(0))
	if err := q.EnsureKind(ctx, "k", inMinutes(1)); err != nil {
		t.Fatal(err)
	}
	if got := timeouts(t, q, "k"); !slices.Equal(got, []time.Duration{time.Minute}) {
		t.Errorf("tasks have %v, want a minute", got)
	}
}
