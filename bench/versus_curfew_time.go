package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// PendingLags runs a reaper and no worker. The observer reads the events.
func (s *curfewSide) PendingLags(ctx context.Context, l DeadlineLoad) ([]time.Duration, error) {
	return detect(ctx, s.q, l.Pending, l.Others, l.Over)
}

// RunningLags runs a worker, with its reaper. The observer reads the events.
func (s *curfewSide) RunningLags(ctx context.Context, l DeadlineLoad) (RunningLags, error) {
	if err := far(ctx, s.q, l.Others); err != nil {
		return RunningLags{}, err
	}
	cancelled := newLagList(l.Running)
	crew := s.crew(ctx, 1, worker.Config{Concurrency: l.Running}, "stuck", func(ctx context.Context) error {
		return cancelled.untilDone(ctx, worker.Info(ctx).Deadline)
	})
	enqueue := func(ctx context.Context) error {
		_, err := s.q.Enqueue(ctx, queue.Task{Kind: "stuck", Payload: payload(), Timeout: runFor})
		return err
	}
	lags, err := whileRunning(ctx, l, cancelled, enqueue, func(ctx context.Context) ([]time.Duration, error) {
		return observe(ctx, s.q, l.Running, l.Over+patience)
	})
	if stopped := crew.Stop(); err == nil {
		err = stopped
	}
	return lags, err
}

// Put, Hold, Take and Interval implement Recoverer.

func (s *curfewSide) Put(ctx context.Context, line string) error {
	_, err := s.q.Enqueue(ctx, queue.Task{Kind: "held", Queue: line, Payload: payload()})
	return err
}

// Hold runs no reaper, so that only the worker that stays alive has one.
func (s *curfewSide) Hold(ctx context.Context, line string, began func()) error {
	w := worker.New(s.q, worker.Config{Queues: map[string]int{line: 1}, Lease: s.lease, NoReaper: true})
	w.HandleRaw("held", func(ctx context.Context, _ []byte) ([]byte, error) {
		began()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return w.Run(ctx)
}

func (s *curfewSide) Take(ctx context.Context, lines []string, started func(line string)) (Crew, error) {
	queues := map[string]int{}
	for _, line := range lines {
		queues[line] = 1
	}
	return s.crew(ctx, 1, worker.Config{Concurrency: len(lines), Queues: queues}, "held", func(ctx context.Context) error {
		started(worker.Info(ctx).Queue)
		return nil
	}), nil
}

// Interval is the heartbeat interval, a third of the lease.
func (s *curfewSide) Interval() time.Duration { return cmp.Or(s.lease, defaultLease) / 3 }

// far enqueues tasks with a far deadline to a queue that no worker serves.
func far(ctx context.Context, q *queue.Queue, n int) error {
	err := accepted(q.EnqueueAll(ctx, tasks(n, func(int) queue.Task {
		return queue.Task{Kind: "far", Queue: "far", Timeout: time.Hour}
	})))
	if err != nil {
		return fmt.Errorf("tasks with far deadlines: %w", err)
	}
	return nil
}
