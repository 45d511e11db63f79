package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "a task hangs, ignores everything, and is ended on time; in this process, on an in-memory Redis",
		Flags: []cli.Flag{
			durationFlag("timeout", 2*time.Second, "how long the task may take"),
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			t := durationOf(c, "timeout")
			if t < 10*time.Millisecond || t > time.Minute {
				return usage("--timeout %v must be from 10ms to 1m", duration.Duration(t))
			}
			return demo(c.Context, c.App.Writer, t)
		},
		OnUsageError: usageError,
	}
}

// demo runs a task that finishes and one that hangs, and fails if the hung one was
// not ended: it is an assertion as well as a show.
func demo(ctx context.Context, out io.Writer, timeout time.Duration) error {
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
	var mu sync.Mutex // the handler speaks too
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "  %s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(out, "\n  curfew demo   in-memory Redis, one worker, one reaper\n\n")

	hung := make(chan struct{})
	w := worker.New(q, worker.Config{Concurrency: 4, Logger: logger, ShutdownTimeout: time.Millisecond, ShutdownGrace: time.Millisecond})
	worker.Handle(w, "greet", func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	w.HandleRaw("hang", func(ctx context.Context, _ []byte) ([]byte, error) {
		close(hung)
		say("hang     started, and ignores its context for ever")
		<-ctx.Done()
		say("hang     its context ends: %v", context.Cause(ctx))
		select {} // a handler that cannot be stopped: it keeps its slot, not its task
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	greet, err := q.Enqueue(ctx, queue.Task{Kind: "greet", Payload: []byte(`"world"`), Timeout: timeout})
	if err != nil {
		return err
	}
	result, err := q.Result(ctx, greet.ID)
	if err != nil {
		return fmt.Errorf("a task that had all the time it needs: %w", err)
	}
	say("greet    task %s  COMPLETED  %s", greet.ID, result)

	task, err := q.Enqueue(ctx, queue.Task{Kind: "hang", Timeout: timeout})
	if err != nil {
		return err
	}
	say("hang     task %s  deadline in %v", task.ID, timeout)
	<-hung
	_, err = q.Result(ctx, task.ID)
	var late *queue.TaskTimedOutError
	if !errors.As(err, &late) {
		return fmt.Errorf("the hung task should have timed out, and ended with: %v", err)
	}
	record, err := q.Get(ctx, task.ID)
	if err != nil {
		return err
	}
	lag := record.DetectedAt.Sub(record.Deadline)
	say("TIMEOUT  task %s  %s after %v: %s", task.ID, record.Status, timeout, record.Error)
	fmt.Fprintf(out, "\n  noticed %d ms after its deadline; the handler hangs on, its task does not.\n\n", lag.Milliseconds())
	if lag > 500*time.Millisecond {
		return fmt.Errorf("the timeout was noticed %v late, and half a second is the promise", lag)
	}
	stop()
	return <-ended
}
