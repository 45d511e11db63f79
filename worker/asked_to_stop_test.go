package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// StopWorker makes a worker finish its tasks and take no more. The worker reports that it drains, and
// Run returns nil.
func TestStopWorkerMakesAWorkerDrainAndReturn(t *testing.T) {
	t.Parallel()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newStage(t, rdb, 2)
		w := worker.New(s.q, worker.Config{Name: "mail", Concurrency: 3, Queues: map[string]int{"default": 1, "other": 2}})
		began, release := make(chan struct{}), make(chan struct{})
		w.HandleRaw("k", raw(func(context.Context) error { began <- struct{}{}; <-release; return nil }))
		ended := make(chan error, 1)
		go func() { ended <- w.Run(context.Background()) }()
		id := s.enqueue(queue.Task{Kind: "k"})
		receive(t, began)
		await.Until(t, "the worker has described itself", func() bool { return s.worker(w).State == queue.WorkerRunning })
		about := s.worker(w)
		if about.Held != 1 || about.Concurrency != 3 || about.Queues["other"] != 2 || about.Name != "mail" || about.PID == 0 || about.Host == "" ||
			about.StartedAt.IsZero() || len(about.Kinds) != 1 || !about.StopAsked.IsZero() || !about.LeaseEnds.After(time.Now()) {
			t.Errorf("inspect.Workers returns %+v for the running worker", about)
		}

		if err := s.q.StopWorker(s.ctx, w.ID()); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the worker reports that it drains", func() bool { return s.worker(w).State == queue.WorkerDraining })
		if about := s.worker(w); about.StopAsked.IsZero() || about.Host == "" {
			t.Errorf("inspect.Workers returns %+v for the draining worker", about)
		}
		later := s.enqueueAll(queue.Task{Kind: "k"}, queue.Task{Kind: "k"}, queue.Task{Kind: "k"})
		close(release)
		if err := await.Receive(t, ended, "Run returns"); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if r := s.record(id); r.Status != queue.Completed {
			t.Errorf("the task that ran is %s, want COMPLETED", r.Status)
		}
		for _, id := range later {
			if r := s.record(id); r.Status != queue.Pending || r.Epoch != 0 {
				t.Errorf("a task enqueued later is %s of epoch %d, want PENDING of 0", r.Status, r.Epoch)
			}
		}
		if list, err := inspect.Workers(s.ctx, s.q); err != nil || len(list) != 0 {
			t.Errorf("Workers = %v, %v, want none", list, err)
		}
		if err := s.q.StopWorker(s.ctx, w.ID()); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("StopWorker of a worker that has ended = %v, want ErrNotFound", err)
		}
	})
}

// worker returns what inspect.Workers reports about a worker, or zero if it is not in the list.
func (s *stage) worker(w *worker.Worker) inspect.Worker {
	s.Helper()
	list, err := inspect.Workers(s.ctx, s.q)
	if err != nil {
		s.Fatal(err)
	}
	for _, one := range list {
		if one.ID == w.ID() {
			return one
		}
	}
	return inspect.Worker{}
}

// If the message of StopWorker is lost, the reply to the next fetch or heartbeat stops the worker.
func TestAWorkerStopsThoughTheMessageIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		by     string
		config worker.Config
	}{
		{"a fetch", worker.Config{Lease: 10 * time.Minute, Beat: 5 * time.Minute}},
		{"a heartbeat", worker.Config{Lease: 3 * time.Second, Beat: 100 * time.Millisecond, Concurrency: 1}},
	} {
		t.Run(c.by, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, shared(t), 1)
			w := worker.New(s.q, c.config)
			began := make(chan struct{}, 1)
			w.HandleRaw("k", raw(func(ctx context.Context) error { began <- struct{}{}; <-ctx.Done(); return ctx.Err() }))
			ended := make(chan error, 1)
			go func() { ended <- w.Run(context.Background()) }()
			if c.config.Concurrency == 1 { // the worker then has no free slot, and does not fetch
				s.enqueue(queue.Task{Kind: "k", Timeout: 3 * time.Second})
				receive(t, began)
			}
			await.Until(t, "the worker has a state", func() bool { return s.worker(w).State != "" })
			// Do what StopWorker does, without the message.
			if err := s.rdb.HSet(s.ctx, s.q.Root(0)+":worker:"+w.ID(), "stop_at", "1").Err(); err != nil {
				t.Fatal(err)
			}
			if err := await.Receive(t, ended, "Run returns"); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
			queuetest.Sound(t, s.q)
		})
	}
}

// A description that is too long is stored without its kinds. The worker still runs.
func TestALongDescriptionLosesItsKinds(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	for i := range 100 {
		w.HandleRaw(strings.Repeat("k", 100)+string(rune('a'+i%26))+string(rune('a'+i/26)), raw(func(context.Context) error { return nil }))
	}
	stop := s.run(w)
	defer stop()
	await.Until(t, "the worker has described itself", func() bool { return s.worker(w).Host != "" })
	if about := s.worker(w); about.Kinds != nil || about.Queues["default"] != 1 {
		t.Errorf("inspect.Workers returns %+v, want no kinds, and the queue default", about)
	}
}

// A description that fails is sent again after the next heartbeat, although the worker has no task.
func TestADescriptionThatFailsIsSentAgain(t *testing.T) {
	t.Parallel()
	var left atomic.Int64 // how many descriptions fail
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if (has(cmd, string(queue.WorkerRunning)) || has(cmd, string(queue.WorkerDraining))) && left.Add(-1) >= 0 {
			cmd.SetErr(raised("ERR the script hit a bug"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	})
	s := newStage(t, rdb, 1)
	left.Store(3)
	w := worker.New(s.q, worker.Config{Beat: 10 * time.Millisecond})
	began, release := make(chan struct{}, 1), make(chan struct{})
	w.HandleRaw("k", raw(func(context.Context) error { began <- struct{}{}; <-release; return nil }))
	stop := s.run(w)
	await.Until(t, "the worker has described itself", func() bool { return s.worker(w).State == queue.WorkerRunning })
	if about := s.worker(w); about.Host == "" || len(about.Kinds) != 1 || about.StartedAt.IsZero() {
		t.Errorf("inspect.Workers returns %+v", about)
	}
	if n := s.logs.Count("could not store its description"); n != 1 {
		t.Errorf("%d errors were logged, want 1 in ten seconds", n)
	}

	s.enqueue(queue.Task{Kind: "k"})
	receive(t, began)
	left.Store(3)
	var stopped sync.WaitGroup
	stopped.Go(stop)
	await.Until(t, "the worker reports that it drains", func() bool { return s.worker(w).State == queue.WorkerDraining })
	close(release)
	stopped.Wait()
}

// Redis removes the description of a worker whose lease has expired. The worker sends it again when it
// has a lease again.
func TestAWorkerDescribesItselfAgainAfterItsLeaseExpired(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	back := make(chan struct{})
	isBack := sync.OnceFunc(func() { away.Store(false); close(back) })
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if away.Load() {
			<-back
		}
		return next(ctx, cmd)
	})
	s := newStage(t, shared(t), 1)
	q, err := queue.Open(s.ctx, rdb, queue.Config{Namespace: s.q.Namespace(), Logger: s.q.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(q, worker.Config{Lease: time.Second, Beat: 10 * time.Millisecond, NoReaper: true})
	w.HandleRaw("k", done)
	s.run(w)
	t.Cleanup(isBack)
	await.Until(t, "the worker has described itself", func() bool { return s.worker(w).State == queue.WorkerRunning })
	away.Store(true)
	await.Until(t, "a sweep removes the worker", func() bool {
		_, err := reaper.Sweep(s.ctx, s.q, 0, "r", 100, time.Second)
		return err == nil && s.worker(w).ID == ""
	})
	isBack()
	await.Until(t, "the worker has described itself again", func() bool { return s.worker(w).State == queue.WorkerRunning })
	if about := s.worker(w); about.Host == "" {
		t.Errorf("inspect.Workers returns %+v, want the description", about)
	}
}
