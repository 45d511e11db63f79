package shards

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

func testEverything(t *testing.T, c *redistest.Cluster) {
	const partitions = 12
	s := newStage(t, c.URL(), partitions)
	if served := s.served(); len(served) != 3 {
		t.Errorf("%d partitions are on %d masters, want on all three: %v", partitions, len(served), served)
	}
	stopped := make(chan error, partitions)
	began := make(chan string, partitions)
	s.work(func(w *worker.Worker) {
		w.HandleRaw("echo", func(_ context.Context, payload []byte) ([]byte, error) { return payload, nil })
		w.HandleRaw("fail", func(context.Context, []byte) ([]byte, error) { return nil, worker.Fail(1, errors.New("never")) })
		w.HandleRaw("hang", func(ctx context.Context, _ []byte) ([]byte, error) {
			began <- worker.Info(ctx).ID
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return nil, ctx.Err()
		})
	})

	t.Run("tasks of all partitions run, and their results can be read", func(t *testing.T) {
		s.round(t, queue.Task{Kind: "echo", Payload: []byte("p")}, func(_ string, result []byte, err error) error {
			if err != nil || string(result) != "p" {
				return fmt.Errorf("%q, %w", result, err)
			}
			return nil
		})
	})
	t.Run("Result returns the failure of a task", func(t *testing.T) {
		s.round(t, queue.Task{Kind: "fail"}, func(_ string, _ []byte, err error) error {
			var failed *queue.TaskFailedError
			if !errors.As(err, &failed) {
				return err
			}
			return nil
		})
	})
	t.Run("a task that no worker takes times out, and so does a delayed task", func(t *testing.T) {
		for _, task := range []queue.Task{
			{Kind: "echo", Queue: "nobody", Timeout: 200 * time.Millisecond},
			{Kind: "echo", Queue: "nobody", Delay: 100 * time.Millisecond, QueueTimeout: 100 * time.Millisecond},
		} {
			s.round(t, task, func(_ string, _ []byte, err error) error {
				var late *queue.TaskTimedOutError
				if !errors.As(err, &late) {
					return err
				}
				return nil
			})
		}
	})
	t.Run("a running task is cancelled, and its handler's context ends", func(t *testing.T) {
		go func() {
			for range partitions {
				id := <-began
				if _, err := s.Q.Cancel(context.Background(), id, "enough"); err != nil {
					t.Error(err)
				}
			}
		}()
		s.round(t, queue.Task{Kind: "hang"}, func(_ string, _ []byte, err error) error {
			if !errors.Is(err, refusal.ErrCancelled) {
				return err
			}
			return nil
		})
		for range partitions {
			if cause := await.Receive(t, stopped, "a handler's context ends"); !errors.Is(cause, worker.ErrCancelled) {
				t.Errorf("the cause of a handler's context is %v, want ErrCancelled", cause)
			}
		}
	})
	t.Run("an idempotency key finds its task in every partition", func(t *testing.T) {
		other := s.Another()
		for i := range 2 * partitions {
			task := queue.Task{Kind: "echo", IdempotencyKey: fmt.Sprint("order-", i)}
			first, err := s.Q.Enqueue(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			again, err := other.Enqueue(t.Context(), task)
			if err != nil || again.ID != first.ID || again.New {
				t.Errorf("the second enqueue: %+v, %v; the first: %+v", again, err, first)
			}
			task.Kind = "fail"
			if _, err := other.Enqueue(t.Context(), task); !errors.Is(err, refusal.ErrConflict) {
				t.Errorf("with another kind: %v, want ErrConflict", err)
			}
		}
	})
	t.Run("names and the defaults of a kind hold in every partition", func(t *testing.T) {
		ctx, other := t.Context(), s.Another()
		if err := other.EnsureKind(ctx, "later", queue.Defaults{Timeout: 2 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		found := map[int]bool{}
		for i := range 8 * partitions {
			task := queue.Task{Kind: "later", Name: fmt.Sprint("order/", i), Delay: time.Hour}
			first, err := s.Q.Enqueue(ctx, task)
			if err != nil {
				t.Fatal(err)
			}
			again, err := other.Enqueue(ctx, task)
			if err != nil || again.ID != first.ID || again.New || first.ID != other.IDOf(task.Name) {
				t.Errorf("the second enqueue: %+v, %v; the first: %+v", again, err, first)
			}
			if r, err := other.Get(ctx, first.ID); err != nil || r.Deadline.Sub(r.AvailableAt) != 2*time.Hour {
				t.Errorf("%+v, %v: it does not have the defaults", r, err)
			}
			p, _ := queue.PartitionOf(first.ID)
			found[p] = true
		}
		if len(found) != partitions {
			t.Errorf("the names are in %d partitions, want %d", len(found), partitions)
		}
	})
	t.Run("counts and audit see all shards", func(t *testing.T) {
		stats, err := s.Q.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(stats.Queues) != 2 || stats.Queues[0].Failed != partitions || stats.Queues[0].Cancelled != partitions || stats.Queues[1].TimedOut != 2*partitions {
			t.Errorf("%+v", stats)
		}
		// The audit finds a wrong index entry in every partition.
		s.Audit(s.Q)
		for p := range partitions {
			if err := s.Q.Client().ZAdd(t.Context(), s.Q.Root(p)+":deadlines", redis.Z{Score: 1e15, Member: "nobody"}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		findings, err := inspect.Audit(t.Context(), s.Q)
		if err != nil {
			t.Fatal(err)
		}
		found := map[int]bool{}
		for _, f := range findings {
			found[f.Partition] = true
		}
		if len(found) != partitions {
			t.Errorf("%d partitions have a wrong entry, and the audit finds it in %d: %v", partitions, len(found), findings)
		}
	})
}

// round enqueues a task for each partition and calls judge with the end of each.
func (s *stage) round(t *testing.T, task queue.Task, judge func(id string, result []byte, err error) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	seen := map[int]bool{}
	var ids []string
	for range s.Q.Partitions() {
		r, err := s.Q.Enqueue(ctx, task)
		if err != nil {
			t.Fatal(err)
		}
		p, err := queue.PartitionOf(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		seen[p] = true
		ids = append(ids, r.ID)
	}
	if len(seen) != s.Q.Partitions() {
		t.Errorf("%d tasks went to %d partitions", len(ids), len(seen))
	}
	for _, id := range ids {
		result, err := s.Q.Result(ctx, id)
		if err := judge(id, result, err); err != nil {
			t.Errorf("%s has another end than expected: %v", id, err)
		}
	}
}
