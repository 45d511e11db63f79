package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// concurrency is that of each worker and of each asynq server in Versus.
const concurrency = 50

// curfewSide is Curfew in a comparison.
type curfewSide struct {
	address string
	servers int

	rdb  redis.UniversalClient
	q    *queue.Queue
	list []queue.Task
}

func (s *curfewSide) begin(ctx context.Context) (err error) {
	if s.rdb, err = queue.Connect("redis://" + s.address); err != nil {
		return err
	}
	s.q, err = queue.Open(ctx, s.rdb, queue.Config{Logger: quiet})
	return err
}

func (s *curfewSide) prepare(n int) int {
	s.list = tasks(n, noop)
	return n
}

func (s *curfewSide) put(ctx context.Context, i int) error {
	_, err := s.q.Enqueue(ctx, s.list[i])
	return err
}

func (s *curfewSide) putAll(ctx context.Context, _ int) error {
	return accepted(s.q.EnqueueAll(ctx, s.list))
}

func (s *curfewSide) work(ctx context.Context, handled func()) (crew, error) {
	ctx, stop := context.WithCancel(ctx)
	ended, failed := make(chan error, s.servers), make(chan error, s.servers)
	for range s.servers {
		w := worker.New(s.q, worker.Config{Concurrency: concurrency})
		w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) {
			handled()
			return nil, nil
		})
		go func() {
			err := w.Run(ctx)
			if ctx.Err() == nil {
				failed <- fmt.Errorf("a worker stopped: %w", err)
			}
			ended <- err
		}()
	}
	return crew{failed, func() error {
		stop()
		var errs []error
		for range s.servers {
			errs = append(errs, <-ended) // Run returns when all is settled
		}
		return errors.Join(errs...)
	}}, nil
}

func (s *curfewSide) check(ctx context.Context, n int) error { return completed(ctx, s.q, n) }

func (s *curfewSide) end() error { return s.rdb.Close() }
