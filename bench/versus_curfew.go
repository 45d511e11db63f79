package bench

import (
	"context"
	"errors"
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
	ended, failed := make(chan error, servers), make(chan error, servers)
	for range servers {
		w := worker.New(s.q, config)
		w.HandleRaw(kind, func(ctx context.Context, _ []byte) ([]byte, error) { return nil, handle(ctx) })
		go func() {
			err := w.Run(ctx)
			if ctx.Err() == nil {
				failed <- stoppedEarly(ctx, err)
			}
			ended <- err
		}()
	}
	return Crew{failed, func() error {
		stop()
		var errs []error
		for range servers {
			errs = append(errs, <-ended) // Run returns when all is settled
		}
		return errors.Join(errs...)
	}}
}

func (s *curfewSide) Check(ctx context.Context, n int) error {
	enqueued, completed, err := progress(ctx, s.q)
	return enough(completed, n, enough(enqueued, n, err))
}

func (s *curfewSide) Close() error { return s.rdb.Close() }
