package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // these tests wait more than they compute
	redistest.Main(m)
}

// shared returns a client of the server that these tests share.
func shared(t testing.TB) redis.UniversalClient { return redistest.Shared(t).Client(t) }

// patience is how long a test waits before it fails.
const patience = await.Patience

// stage is a namespace for one test.
type stage struct {
	*testing.T
	ctx  context.Context
	rdb  redis.UniversalClient
	q    *queue.Queue
	logs *harness.Logs
}

func newStage(t *testing.T, rdb redis.UniversalClient, partitions int) *stage {
	t.Helper()
	s := &stage{T: t, ctx: t.Context(), rdb: rdb, logs: &harness.Logs{}}
	logger := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	q, err := queue.Open(s.ctx, rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: partitions, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	s.q = q
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", s.logs)
		}
	})
	return s
}

// run starts a worker. stop ends it, and returns when it has drained.
func (s *stage) run(w *worker.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				s.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(await.Limit(s)):
			s.Error("Run did not return")
		}
	})
	s.Cleanup(stop)
	return stop
}

func (s *stage) enqueue(task queue.Task) string {
	s.Helper()
	r, err := s.q.Enqueue(s.ctx, task)
	if err != nil {
		s.Fatal(err)
	}
	return r.ID
}

func (s *stage) enqueueAll(tasks ...queue.Task) (ids []string) {
	s.Helper()
	receipts, err := s.q.EnqueueAll(s.ctx, tasks)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range receipts {
		if r.Err != nil {
			s.Fatal(r.Err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// ended waits for the end of a task and returns its record.
func (s *stage) ended(id string) *queue.Record {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if _, err := s.q.Result(ctx, id); errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		s.Fatalf("task %s has not ended: %+v", id, s.record(id))
	}
	return s.record(id)
}

func (s *stage) record(id string) *queue.Record {
	s.Helper()
	r, err := s.q.Get(s.ctx, id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// leaseEnd returns when the lease of the only worker ends, in ms.
func (s *stage) leaseEnd() float64 {
	s.Helper()
	workers, err := s.rdb.ZRangeWithScores(s.ctx, s.q.Root(0)+":workers", 0, -1).Result()
	if err != nil || len(workers) != 1 {
		s.Fatalf("the workers are %v, %v, want one", workers, err)
	}
	return workers[0].Score
}

// receive returns the next value of c. The test fails if none comes.
func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	return await.Receive(t, c, "a value on the test's channel")
}

func raw(f func(ctx context.Context) error) worker.Handler {
	return func(ctx context.Context, _ []byte) ([]byte, error) { return nil, f(ctx) }
}
