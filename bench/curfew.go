package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Curfew returns this library as a System, with its default settings and quiet logs: events,
// heartbeats, a reaper, retention, and a deadline for each task. lease is the lease of its workers
// in a RecoveryTrial, or 0 for the default of 15 s.
func Curfew(lease time.Duration) System { return &curfewSide{lease: lease} }

// defaultLease is the default of worker.Config.Lease.
const defaultLease = 15 * time.Second

// curfewSide is Curfew in a comparison.
type curfewSide struct {
	lease time.Duration

	rdb  redis.UniversalClient
	q    *queue.Queue
	list []queue.Task
}

func (s *curfewSide) Name() string    { return "curfew" }
func (s *curfewSide) Version() string { return "" } // it is this program

func (s *curfewSide) Prefixes(namespace string) []string { return []string{namespace + ":{"} }

func (s *curfewSide) Open(ctx context.Context, at Place) (err error) {
	if s.rdb, err = queue.Connect(at.URL); err != nil {
		return err
	}
	if s.q, err = queue.Open(ctx, s.rdb, queue.Config{Namespace: at.Namespace, Logger: quiet}); err != nil {
		s.rdb.Close()
	}
	return err
}

func (s *curfewSide) Prepare(payloads [][]byte) int {
	s.list = tasks(len(payloads), func(i int) queue.Task {
		return queue.Task{Kind: "noop", Payload: payloads[i], Timeout: time.Hour}
	})
	return len(s.list)
}

func (s *curfewSide) Enqueue(ctx context.Context, i int) error {
	_, err := s.q.Enqueue(ctx, s.list[i])
	return err
}

// EnqueueAll enqueues the whole list with one call.
func (s *curfewSide) EnqueueAll(ctx context.Context) error {
	return accepted(s.q.EnqueueAll(ctx, s.list))
}

func (s *curfewSide) Work(ctx context.Context, w Workers, handled func()) (Crew, error) {
	return s.crew(ctx, w.Servers, worker.Config{Concurrency: w.Concurrency}, "noop", func(context.Context) error {
		handled()
		return nil
	}), nil
}

// crew runs workers with one handler.
func (s *curfewSide) crew(ctx context.Context, servers int, config worker.Config, kind string, handle func(ctx context.Context) error) Crew {
	ctx, stop := context.WithCancel(ctx)
	done, failed := make(chan error, servers), make(chan error, servers)
	for range servers {
		w := worker.New(s.q, config)
		w.HandleRaw(kind, func(ctx context.Context, _ []byte) ([]byte, error) { return nil, handle(ctx) })
		go func() {
			err := w.Run(ctx)
			if ctx.Err() == nil {
				failed <- stoppedEarly(ctx, err)
			}
			done <- err
		}()
	}
	return Crew{failed, func() error {
		stop()
		var errs []error
		for range servers {
			errs = append(errs, <-done) // Run returns when all is settled
		}
		return errors.Join(errs...)
	}}
}

func (s *curfewSide) Check(ctx context.Context, n int) error {
	enqueued, completed, err := progress(ctx, s.q)
	return enough(completed, n, enough(enqueued, n, err))
}

func (s *curfewSide) Close() error { return s.rdb.Close() }

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
