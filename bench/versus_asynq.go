package bench

import (
	"context"
	"fmt"
	"sync"

	"github.com/hibiken/asynq"
)

// Asynq returns github.com/hibiken/asynq as a System, with its default settings and quiet logs:
// heartbeats, forwarder, janitor, recoverer, a timeout of 30 minutes for each task, and no
// retention. It has no namespaces: its keys begin with "asynq:".
func Asynq() System { return &asynqSide{} }

// asynqSide is asynq in a comparison.
type asynqSide struct {
	at     asynq.RedisClientOpt
	client *asynq.Client
	list   []*asynq.Task
}

func (s *asynqSide) Name() string             { return "asynq" }
func (s *asynqSide) Version() string          { return moduleVersion("github.com/hibiken/asynq") }
func (s *asynqSide) Prefixes(string) []string { return []string{"asynq:"} }

// Open leaves the pool of connections at its default size: a larger one is slower.
func (s *asynqSide) Open(_ context.Context, at Place) error {
	o, err := at.options()
	if err != nil {
		return err
	}
	s.at = asynq.RedisClientOpt{Network: o.Network, Addr: o.Addr, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig}
	s.client = asynq.NewClient(s.at)
	return nil
}

func (s *asynqSide) Close() error { return s.client.Close() }

func (s *asynqSide) Prepare(payloads [][]byte) int {
	s.list = make([]*asynq.Task, len(payloads))
	for i := range s.list {
		s.list[i] = asynq.NewTask("noop", payloads[i])
	}
	return len(s.list)
}

func (s *asynqSide) Enqueue(ctx context.Context, i int) error {
	_, err := s.client.EnqueueContext(ctx, s.list[i])
	return err
}

func (s *asynqSide) Work(_ context.Context, w Workers, handled func()) (Crew, error) {
	return s.crew(w.Servers, asynq.Config{Concurrency: w.Concurrency}, func(context.Context, *asynq.Task) error {
		handled()
		return nil
	})
}

// crew runs asynq's servers with one handler.
func (s *asynqSide) crew(servers int, config asynq.Config, handle asynq.HandlerFunc) (Crew, error) {
	config.LogLevel = asynq.ErrorLevel
	var running []*asynq.Server
	stop := func() error {
		var group sync.WaitGroup
		for _, server := range running {
			group.Go(server.Shutdown) // each takes a second
		}
		group.Wait()
		return nil
	}
	for range servers {
		server := asynq.NewServer(s.at, config)
		if err := server.Start(handle); err != nil {
			stop()
			return Crew{}, err
		}
		running = append(running, server)
	}
	return Crew{Stop: stop}, nil
}

func (s *asynqSide) Check(_ context.Context, n int) error {
	inspector := asynq.NewInspector(s.at)
	defer inspector.Close()
	info, err := inspector.GetQueueInfo("default")
	if err == nil && (info.ProcessedTotal != n || info.FailedTotal != 0 || info.Size != 0) {
		err = fmt.Errorf("asynq processed %d of %d tasks, %d of them failed, and %d are left", info.ProcessedTotal, n, info.FailedTotal, info.Size)
	}
	return err
}
