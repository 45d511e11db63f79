package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

// asynqSide does not implement PendingDeadlines: asynq checks a task's deadline when a server
// takes the task, and never before.

// RunningLags runs a server. asynq has no events, so the observer polls its Inspector for archived tasks. Tasks are
// archived when they fail, because none is retried. The deadline of a task is the deadline of its handler's context.
func (s *asynqSide) RunningLags(ctx context.Context, l DeadlineLoad) (lags RunningLags, err error) {
	if err := s.far(ctx, l.Others); err != nil {
		return lags, err
	}
	cancelled, deadlines := newLagList(l.Running), &sync.Map{} // deadlines of the tasks, by id
	ctx, cancel := context.WithCancel(ctx)
	// The handlers' contexts end with this measurement: a server waits for its handlers when it stops.
	base := func() context.Context { return ctx }
	crew, err := s.crew(1, asynq.Config{Concurrency: l.Running, BaseContext: base}, func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		deadline, _ := ctx.Deadline()
		deadlines.Store(id, deadline)
		return cancelled.untilDone(ctx, deadline)
	})
	if err != nil {
		cancel()
		return lags, err
	}
	defer crew.Stop()
	defer cancel()
	enqueue := func(ctx context.Context) error {
		_, err := s.client.EnqueueContext(ctx, asynq.NewTask("stuck", payload()), asynq.Timeout(runFor), asynq.MaxRetry(0))
		return err
	}
	return whileRunning(ctx, l, cancelled, enqueue, func(ctx context.Context) ([]time.Duration, error) {
		return s.watchArchived(ctx, l.Running, deadlines)
	})
}

// far enqueues tasks with a far deadline to a queue that no worker serves.
func (s *asynqSide) far(ctx context.Context, n int) error {
	deadline := time.Now().Add(time.Hour)
	return fromGoroutines(n, 64, func(int) error {
		_, err := s.client.EnqueueContext(ctx, asynq.NewTask("far", nil), asynq.Queue("far"), asynq.Deadline(deadline))
		return err
	})
}

// watchArchived returns how late each of n tasks was seen to be archived.
func (s *asynqSide) watchArchived(ctx context.Context, n int, deadlines *sync.Map) ([]time.Duration, error) {
	inspector := asynq.NewInspector(s.at)
	defer inspector.Close()
	seen := make(map[string]bool, n)
	var lags []time.Duration
	for len(lags) < n {
		archived, err := inspector.ListArchivedTasks("default", asynq.PageSize(n))
		now := time.Now()
		if err != nil && !errors.Is(err, asynq.ErrQueueNotFound) { // the queue does not exist before its first task
			return nil, err
		}
		for _, task := range archived {
			if deadline, ok := deadlines.Load(task.ID); ok && !seen[task.ID] {
				seen[task.ID] = true
				lags = append(lags, now.Sub(deadline.(time.Time)))
			}
		}
		if pause(ctx, time.Millisecond/2); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return lags, nil
}

// Put, Hold, Take and Interval implement Recoverer.

func (s *asynqSide) Put(ctx context.Context, line string) error {
	_, err := s.client.EnqueueContext(ctx, asynq.NewTask("held", payload()), asynq.Queue(line))
	return err
}

func (s *asynqSide) Hold(ctx context.Context, line string, began func()) error {
	crew, err := s.crew(1, asynq.Config{Concurrency: 10, Queues: map[string]int{line: 1}}, func(context.Context, *asynq.Task) error {
		began()
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return crew.Stop()
}

func (s *asynqSide) Take(_ context.Context, lines []string, started func(line string)) (Crew, error) {
	queues := map[string]int{}
	for _, line := range lines {
		queues[line] = 1
	}
	return s.crew(1, asynq.Config{Concurrency: len(lines), Queues: queues}, func(ctx context.Context, _ *asynq.Task) error {
		line, _ := asynq.GetQueueName(ctx)
		started(line)
		return nil
	})
}

// Interval is the interval of asynq's recoverer, which checks for ended leases.
func (s *asynqSide) Interval() time.Duration { return time.Minute }
