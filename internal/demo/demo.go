// Package demo shows, on the embedded server, that a task which hangs is ended on time. It fails if the task
// is not.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// promised is how late a timeout may be written.
const promised = 500 * time.Millisecond

// enough is the timeout of a task that must not time out, even on a busy machine.
const enough = time.Minute

// show is a running demo.
type show struct {
	q       *queue.Queue
	timeout time.Duration
	hung    chan struct{} // closed when the handler that hangs has begun

	mu  sync.Mutex // guards out, since handlers write to it too
	out io.Writer
}

// Run runs a task that finishes and one that hangs, and writes to out what happens. It returns an error if
// the first task does not complete, or if the second is not ended within half a second of its deadline.
func Run(ctx context.Context, out io.Writer, timeout time.Duration) error {
	server, err := embedded.Start()
	if err != nil {
		return err
	}
	defer server.Close()
	rdb := server.Client()
	defer rdb.Close()
	logger := slog.New(slog.DiscardHandler)
	q, err := queue.Open(ctx, rdb, queue.Config{Logger: logger})
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &show{q: q, timeout: timeout, hung: make(chan struct{}), out: out}
	fmt.Fprintf(out, "\n  curfew demo   in-memory Redis, one worker, one reaper\n\n")
	ended := make(chan error, 1)
	go func() { ended <- s.worker(logger).Run(ctx) }()
	if err := s.greet(ctx); err != nil {
		return err
	}
	if err := s.hang(ctx); err != nil {
		return err
	}
	stop()
	return <-ended
}

func (s *show) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "  %s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

func (s *show) worker(logger *slog.Logger) *worker.Worker {
	w := worker.New(s.q, worker.Config{Concurrency: 4, Logger: logger, ShutdownTimeout: time.Millisecond, ShutdownGrace: time.Millisecond})
	worker.Handle(w, "greet", func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	w.HandleRaw("hang", func(ctx context.Context, _ []byte) ([]byte, error) {
		close(s.hung)
		s.say("hang     started; it will ignore the end of its context")
		<-ctx.Done()
		s.say("hang     its context has ended: %v", context.Cause(ctx))
		select {} // a handler that cannot be stopped: it keeps its slot in the worker, but not its task
	})
	return w
}

// greet runs a task that has all the time it needs.
func (s *show) greet(ctx context.Context) error {
	greet, err := s.q.Enqueue(ctx, queue.Task{Kind: "greet", Payload: []byte(`"world"`), Timeout: enough})
	if err != nil {
		return err
	}
	result, err := s.q.Result(ctx, greet.ID)
	if err != nil {
		return fmt.Errorf("the task that had all the time it needs did not complete: %w", err)
	}
	s.say("greet    task %s  COMPLETED  %s", greet.ID, result)
	return nil
}

// hang runs a task whose handler never returns.
func (s *show) hang(ctx context.Context) error {
	task, err := s.q.Enqueue(ctx, queue.Task{Kind: "hang", Timeout: s.timeout})
	if err != nil {
		return err
	}
	s.say("hang     task %s  deadline in %v", task.ID, s.timeout)
	_, err = s.q.Result(ctx, task.ID)
	var late *queue.TaskTimedOutError
	if err != nil && !errors.As(err, &late) {
		return fmt.Errorf("the hung task did not time out: %w", err)
	}
	record, err := s.q.Get(ctx, task.ID)
	if err != nil {
		return err
	}
	if late == nil {
		return fmt.Errorf("the hung task did not time out: it is %s", record.Status)
	}
	select {
	case <-s.hung:
	default:
		return fmt.Errorf("the task ended on time, but no worker had taken it within %v: give it more with --timeout", s.timeout)
	}
	lag := record.DetectedAt.Sub(record.Deadline)
	s.say("TIMEOUT  task %s  %s after %v: %s", task.ID, record.Status, s.timeout, record.Error)
	fmt.Fprintf(s.out, "\n  noticed %d ms after its deadline; the handler still hangs, but its task has ended.\n\n", lag.Milliseconds())
	if lag > promised {
		return fmt.Errorf("the timeout was noticed %v late, and must be noticed within %v", lag, promised)
	}
	return nil
}
