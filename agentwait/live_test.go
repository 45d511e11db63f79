package agentwait_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// fleet is a namespace that uses the clock of Redis, with a worker that runs until the test ends.
type fleet struct {
	t   *testing.T
	ctx context.Context
	rdb *redis.Client
	q   *queue.Queue
	w   *worker.Worker
}

func newFleet(t *testing.T, rdb *redis.Client, register func(w *worker.Worker)) *fleet {
	f := &fleet{t: t, ctx: t.Context(), rdb: rdb}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	q, err := queue.Open(f.ctx, rdb, queue.Config{Namespace: redistest.Namespace(t), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	f.q, f.w = q, worker.New(q, worker.Config{Concurrency: 50})
	register(f.w)
	running, stop := context.WithCancel(context.Background())
	drained := make(chan error)
	go func() { drained <- f.w.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if findings, err := inspect.Audit(context.Background(), q); err != nil || len(findings) > 0 {
			t.Errorf("the audit found %v, %v", findings, err)
		}
	})
	return f
}

// result enqueues a task, waits for its end, and returns its id, result and error.
func (f *fleet) result(task queue.Task) (string, string, error) {
	f.t.Helper()
	r, err := f.q.Enqueue(f.ctx, task)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
	defer cancel()
	b, err := f.q.Result(ctx, r.ID)
	return r.ID, string(b), err
}

// The waits have more children than a call creates, more members than a call can have, and more bytes.
func TestAWaitOfThousands(t *testing.T) {
	t.Parallel()
	var ran atomic.Int64
	f := newFleet(t, redistest.Shared(t).Client(t), func(w *worker.Worker) {
		worker.Handle(w, "length", func(_ context.Context, in string) (int, error) { ran.Add(1); return len(in), nil })
		agentwait.Handle(w, "agent", func(a *agentwait.Agent, in struct{ Children, Bytes int }) (int, error) {
			payload := strings.Repeat("x", in.Bytes)
			var all []*agentwait.Future[int]
			for range in.Children {
				all = append(all, agentwait.Schedule[int](a, payload, queue.Task{Kind: "length"}))
			}
			sum := 0
			lengths, err := agentwait.JoinAll(a, all...)
			for _, n := range lengths {
				sum += n
			}
			return sum, err
		})
	})
	for payload, want := range map[string]string{
		`{"Children": 4321, "Bytes": 1}`:    "4321",
		`{"Children": 12, "Bytes": 900000}`: "10800000",
	} {
		ran.Store(0)
		if _, got, err := f.result(queue.Task{Kind: "agent", Payload: []byte(payload)}); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", payload, got, err, want)
		}
	}
	if ran.Load() != 12 && ran.Load() != 4321 {
		t.Errorf("%d children of the last agent ran, want 12 or 4321", ran.Load())
	}
}

// An agent that is retried uses its earlier children: no child runs twice.
func TestARetriedAgentFindsItsChildren(t *testing.T) {
	t.Parallel()
	var ran, tries atomic.Int64
	f := newFleet(t, redistest.Shared(t).Client(t), func(w *worker.Worker) {
		worker.Handle(w, "child", func(context.Context, string) (string, error) { ran.Add(1); return "x", nil })
		agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ string) (string, error) {
			all, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "1", queue.Task{Kind: "child"}), agentwait.Schedule[string](a, "2", queue.Task{Kind: "child"}))
			if err != nil {
				return "", err
			}
			if tries.Add(1) < 3 {
				return "", errBoom
			}
			return strings.Join(all, ""), nil
		})
	})
	if _, got, err := f.result(queue.Task{Kind: "agent", MaxRetries: 2}); err != nil || got != `"xx"` || ran.Load() != 2 {
		t.Fatalf(`Result = %s, %v, want "xx"; %d children ran, want 2`, got, err, ran.Load())
	}
}

// A full Redis refuses the suspension. The agent is given back, spends no retry, and continues when Redis
// has room again.
func TestAnAgentOutlastsAFullRedis(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	var runs atomic.Int64
	full := make(chan struct{})
	f := newFleet(t, rdb, func(w *worker.Worker) {
		worker.Handle(w, "child", func(context.Context, string) (string, error) { return "x", nil })
		agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ string) (string, error) {
			if runs.Add(1) == 1 {
				if err := rdb.ConfigSet(a, "maxmemory", "1").Err(); err != nil {
					return "", err
				}
			}
			v, err := agentwait.Run[string](a, "1", queue.Task{Kind: "child"})
			if errors.Is(err, refusal.ErrFull) && runs.Load() == 1 {
				close(full)
			}
			return v, err
		})
	})
	go func() {
		<-full
		rdb.ConfigSet(context.Background(), "maxmemory", "0")
	}()
	id, got, err := f.result(queue.Task{Kind: "agent"})
	if err != nil || got != `"x"` || runs.Load() != 3 {
		t.Fatalf(`Result = %s, %v after %d runs, want "x" after 3`, got, err, runs.Load())
	}
	if r, err := f.q.Get(f.ctx, id); err != nil || r.Retries != 0 {
		t.Fatalf("the agent has %d retries, %v, want 0", r.Retries, err)
	}
}

// A waiting agent needs no worker: the worker that ran it ends, and another worker, started later,
// continues the agent.
func TestAnAgentOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: redistest.Namespace(t), Events: "all"})
	if err != nil {
		t.Fatal(err)
	}
	var workers []string
	work := func() (stop func()) {
		w := worker.New(q, worker.Config{})
		agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ string) (string, error) {
			workers = append(workers, a.Info().Worker)
			return agentwait.Await(a, agentwait.Signal[string](a, "go"))
		})
		ctx, cancel := context.WithCancel(context.Background())
		drained := make(chan error)
		go func() { drained <- w.Run(ctx) }()
		return func() {
			cancel()
			if err := <-drained; err != nil {
				t.Error(err)
			}
		}
	}
	r, err := q.Enqueue(t.Context(), queue.Task{Kind: "agent"})
	if err != nil {
		t.Fatal(err)
	}
	stop := work()
	for from, suspended := events.Oldest, false; !suspended; {
		batch, err := events.Read(t.Context(), q, from, 100, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		suspended = slices.ContainsFunc(batch.Events, func(e events.Event) bool { return e.Kind == "task_suspended" })
		from = batch.Next
	}
	stop()
	if _, err := q.Signal(t.Context(), r.ID, "go", []byte(`"on"`)); err != nil {
		t.Fatal(err)
	}
	stop = work()
	got, err := q.Result(t.Context(), r.ID)
	stop()
	if err != nil || string(got) != `"on"` || len(workers) != 2 || workers[0] == workers[1] {
		t.Fatalf(`Result = %s, %v, want "on"; the workers were %q, want two`, got, err, workers)
	}
}
