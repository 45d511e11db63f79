package telemetry

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// roleVariable makes a process of this test binary a member of the fleet: a producer or a worker in Go.
const roleVariable = "CURFEW_OBSERVED_ROLE"

func TestMain(m *testing.M) {
	role, known := map[string]func(context.Context, *queue.Queue) error{"produce": produce, "agents": runAgents}[os.Getenv(roleVariable)]
	if !known {
		redistest.Main(m)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := play(ctx, role); err != nil {
		slog.Error("The role failed", "error", err)
		os.Exit(1)
	}
}

// play opens the namespace as a program of a user does, with a log in JSON and spans that go to the collector.
func play(ctx context.Context, role func(context.Context, *queue.Queue) error) error {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	queue.LogClient(slog.Default())
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter))
	defer func() {
		flush, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := provider.Shutdown(flush); err != nil {
			slog.Error("Spans are lost", "error", err)
		}
	}()
	rdb, err := queue.Connect(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	q, err := queue.Open(ctx, rdb, queue.Config{Namespace: os.Getenv("CURFEW_NAMESPACE"), Existing: true, Tracing: queue.Tracing{Provider: provider}})
	if err != nil {
		return err
	}
	q.Engine().SetTryFor(time.Minute) // nobody logs what a call did whose reply came too late
	return role(ctx, q)
}

// produce enqueues the task in each line of stdin, and prints its id.
func produce(ctx context.Context, q *queue.Queue) error {
	slog.Info("The producer is ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		task, err := jsonx.ReadTask(lines.Bytes(), q.MaxBytes())
		if err != nil {
			return err
		}
		receipt, err := q.Enqueue(ctx, task)
		if err != nil {
			return err
		}
		fmt.Println(receipt.ID)
	}
	return lines.Err()
}

// idle returns a child that no worker takes.
func idle(a *agentwait.Agent, timeout time.Duration) *agentwait.Future[json.RawMessage] {
	return agentwait.Schedule[json.RawMessage](a, nil, queue.Task{Kind: "idle", Queue: "nobody", Timeout: timeout})
}

// step returns a child that this process runs. It completes.
func step(a *agentwait.Agent) *agentwait.Future[json.RawMessage] {
	return agentwait.Schedule[json.RawMessage](a, nil, queue.Task{Kind: "step", Queue: "steps", Timeout: time.Minute})
}

// agents are the kinds of agents. Each waits once, and returns only ErrSuspended: the script checks how the wait ended.
var agents = map[string]func(a *agentwait.Agent) error{
	"all": func(a *agentwait.Agent) error { _, err := agentwait.JoinAll(a, step(a), step(a)); return err },
	"any": func(a *agentwait.Agent) error { _, err := agentwait.Select(a, step(a), idle(a, 0)); return err },
	"settled": func(a *agentwait.Agent) error {
		_, err := agentwait.JoinAllSettled(a, idle(a, 300*time.Millisecond), idle(a, 800*time.Millisecond))
		return err
	},
	"overtaken": func(a *agentwait.Agent) error {
		_, err := agentwait.Select(a, idle(a, 400*time.Millisecond), idle(a, 0))
		return err
	},
	"hopeless": func(a *agentwait.Agent) error {
		_, err := agentwait.SelectOK(a, idle(a, 200*time.Millisecond), idle(a, 500*time.Millisecond))
		return err
	},
	"doomed": func(a *agentwait.Agent) error { _, err := agentwait.JoinAll(a, idle(a, 0), idle(a, 0)); return err },
	"impatient": func(a *agentwait.Agent) error {
		_, err := agentwait.Await(a.With(agentwait.Wait{Limit: 500 * time.Millisecond}), idle(a, 0))
		return err
	},
	"signalled": func(a *agentwait.Agent) error {
		_, err := agentwait.Await(a.With(agentwait.Wait{Limit: time.Minute}), agentwait.Signal[int](a, "go"))
		return err
	},
	"restrained": func(a *agentwait.Agent) error {
		_, err := agentwait.JoinAll(a.With(agentwait.Wait{FailFast: true}), idle(a, 300*time.Millisecond), idle(a, 0))
		return err
	},
}

// runAgents is a worker for agents and their steps.
func runAgents(ctx context.Context, q *queue.Queue) error {
	w := worker.New(q, worker.Config{Name: "agents", Queues: map[string]int{"agents": 1, "steps": 1}, Lease: lease, Concurrency: 40, NoReaper: true})
	for kind, wait := range agents {
		agentwait.Handle(w, kind, func(a *agentwait.Agent, _ json.RawMessage) (string, error) {
			if err := wait(a); errors.Is(err, agentwait.ErrSuspended) {
				return "", err
			}
			return "done", nil
		})
	}
	worker.Handle(w, "step", func(context.Context, json.RawMessage) (string, error) { return "done", nil })
	slog.Info("The worker for agents begins")
	return w.Run(ctx)
}
