package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// A worker that is asked to stop from outside finishes what it has, takes nothing more, says so, and
// Run returns.
func TestAWorkerIsAskedToStop(t *testing.T) {
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
			t.Errorf("the worker is told as %+v", about)
		}

		if err := s.q.StopWorker(s.ctx, w.ID()); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "it says that it drains", func() bool { return s.worker(w).State == queue.WorkerDraining })
		if about := s.worker(w); about.StopAsked.IsZero() || about.Host == "" {
			t.Errorf("the worker that drains is told as %+v", about)
		}
		later := s.enqueueAll(queue.Task{Kind: "k"}, queue.Task{Kind: "k"}, queue.Task{Kind: "k"})
		close(release)
		if err := await.Receive(t, ended, "Run returns"); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		if r := s.record(id); r.Status != queue.Completed {
			t.Errorf("what it had is %s", r.Status)
		}
		for _, id := range later {
			if r := s.record(id); r.Status != queue.Pending || r.Epoch != 0 {
				t.Errorf("what came later is %s of epoch %d", r.Status, r.Epoch)
			}
		}
		if list, err := inspect.Workers(s.ctx, s.q); err != nil || len(list) != 0 {
			t.Errorf("Workers = %v, %v, want none", list, err)
		}
		if err := s.q.StopWorker(s.ctx, w.ID()); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("StopWorker of one that has gone = %v, want ErrNotFound", err)
		}
	})
}

// worker is what inspect tells of a worker.
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

// The message that asks it may be lost: its next fetch and its next heartbeat say it again.
func TestAWorkerIsAskedToStopThoughTheMessageIsLost(t *testing.T) {
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
			if c.config.Concurrency == 1 { // it has no slot, and does not fetch
				s.enqueue(queue.Task{Kind: "k", Timeout: 3 * time.Second})
				receive(t, began)
			}
			await.Until(t, "the worker lives", func() bool { return s.worker(w).State != "" })
			// As StopWorker does, without the message.
			if err := s.rdb.HSet(s.ctx, s.q.Root(0)+":worker:"+w.ID(), "stop", "1").Err(); err != nil {
				t.Fatal(err)
			}
			if err := await.Receive(t, ended, "Run returns"); err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
			queuetest.Sound(t, s.q)
		})
	}
}

// A description that is too long loses its kinds, and no worker fails for it.
func TestALongDescription(t *testing.T) {
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
		t.Errorf("it is told as %+v", about)
	}
}
