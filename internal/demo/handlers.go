package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Worker returns a worker with handlers of three kinds:
//
//	greet   completes with a greeting; its payload is a name
//	hang    ignores the end of its context
//	agent   runs a task that hangs, and waits for it; its payload is an AgentInput
func Worker(q *queue.Queue, name string) *worker.Worker {
	w := worker.New(q, worker.Config{Name: name, Concurrency: 100, NoReaper: true, Logger: slog.New(slog.DiscardHandler),
		ShutdownTimeout: time.Millisecond, ShutdownGrace: time.Millisecond}) // what hangs does not delay the end
	worker.Handle(w, "greet", func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	w.HandleRaw("hang", hang)
	agentwait.Handle(w, "agent", agent)
	return w
}

// hang continues after the end of its task. Then it returns, so that the worker does not run out of slots.
func hang(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	time.Sleep(hangs)
	return nil, context.Cause(ctx)
}

// hangs is how long hang continues.
const hangs = time.Minute

// AgentInput is the payload of the demo's agent.
type AgentInput struct {
	// TimeoutMS is the timeout of the task that hangs. Defaults to 3000.
	TimeoutMS int64 `json:"timeout_ms"`
}

// agent waits for a task that hangs. The timeout of the task wakes it.
func agent(a *agentwait.Agent, in AgentInput) (string, error) {
	task := agentwait.Schedule[string](a, nil, queue.Task{Kind: "hang", Timeout: time.Duration(cmp.Or(in.TimeoutMS, 3000)) * time.Millisecond})
	_, err := agentwait.Await(a, task)
	var late *queue.TaskTimedOutError
	if errors.As(err, &late) {
		return fmt.Sprintf("went on without %s", late.TaskID), nil
	}
	return "", err
}
