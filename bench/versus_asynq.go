package bench

import (
	"context"
	"fmt"

	"github.com/hibiken/asynq"
)

// asynqSide is github.com/hibiken/asynq in a comparison.
type asynqSide struct {
	address string
	servers int

	client *asynq.Client
	list   []*asynq.Task
}

// redis is the connection of a client or server, with the default pool: a larger one is slower.
func (s *asynqSide) redis() asynq.RedisClientOpt { return asynq.RedisClientOpt{Addr: s.address} }

func (s *asynqSide) begin(context.Context) error {
	s.client = asynq.NewClient(s.redis())
	return nil
}

func (s *asynqSide) end() error { return s.client.Close() }

func (s *asynqSide) prepare(n int) int {
	s.list = make([]*asynq.Task, n)
	for i := range s.list {
		s.list[i] = asynq.NewTask("noop", payload())
	}
	return n
}

func (s *asynqSide) put(ctx context.Context, i int) error {
	_, err := s.client.EnqueueContext(ctx, s.list[i])
	return err
}

// putAll is one call a task: there is no call for lists.
func (s *asynqSide) putAll(ctx context.Context, calls int) error {
	return fromGoroutines(calls, 64, func(i int) error { return s.put(ctx, i) })
}

func (s *asynqSide) work(_ context.Context, handled func()) (crew, error) {
	handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		handled()
		return nil
	})
	var running []*asynq.Server
	stop := func() error {
		for _, server := range running {
			server.Shutdown()
		}
		return nil
	}
	for range s.servers {
		server := asynq.NewServer(s.redis(), asynq.Config{Concurrency: concurrency, LogLevel: asynq.ErrorLevel})
		if err := server.Start(handler); err != nil {
			stop()
			return crew{}, err
		}
		running = append(running, server)
	}
	return crew{stop: stop}, nil
}

func (s *asynqSide) check(_ context.Context, n int) error {
	inspector := asynq.NewInspector(s.redis())
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err == nil && (info.Processed != n || info.Failed != 0 || info.Size != 0) {
		err = fmt.Errorf("asynq processed %d of %d tasks, %d of them failed, and %d are left", info.Processed, n, info.Failed, info.Size)
	}
	return err
}
