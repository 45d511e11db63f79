// Command approval runs an agent that refunds an order once somebody has approved it. Without an approval within the
// limit, the refund is refused.
//
//	go run ./examples/approval -within 1m &
//	id=$(curfew enqueue refund '{"order": 17, "cents": 4200}' --timeout 5m)
//	curfew get $id.approval
//	curfew resolve $id.approval '"Ada"'
//	curfew wait $id -o json
//
// The agent holds no goroutine and no connection while it waits, and the worker can be restarted meanwhile. Any program
// can resolve the promise: in Go with queue.Resolve, in other languages with curfew_resolve.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

type order struct {
	Order int `json:"order"`
	Cents int `json:"cents"`
}

type verdict struct {
	Refunded bool   `json:"refunded"`
	Why      string `json:"why"`
}

func main() {
	within := flag.Duration("within", time.Minute, "how long to wait for an approval")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *within); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, within time.Duration) error {
	rdb, err := queue.Connect(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	q, err := queue.Open(ctx, rdb, queue.Config{})
	if err != nil {
		return err
	}
	w := worker.New(q, worker.Config{})
	agentwait.Handle(w, "refund", func(a *agentwait.Agent, o order) (verdict, error) { return refund(a, o, within) })
	worker.Handle(w, "pay", pay)
	return w.Run(ctx)
}

// refund is the agent. It runs again from its beginning whenever a wait is over, and what it waited for then returns at
// once. So whatever has an effect is a task of its own.
func refund(a *agentwait.Agent, o order, within time.Duration) (verdict, error) {
	who, err := agentwait.Await(a, agentwait.Promise[string](a, "approval", within))
	var late *queue.TaskTimedOutError
	var rejected *queue.TaskFailedError
	switch {
	case errors.As(err, &late):
		return verdict{Why: fmt.Sprintf("nobody has approved it within %v", within)}, nil
	case errors.As(err, &rejected): // curfew resolve ID --error "too much"
		return verdict{Why: rejected.Err.Error()}, nil
	case err != nil:
		return verdict{}, err
	}
	receipt, err := agentwait.Run[string](a, o, queue.Task{Kind: "pay", Timeout: time.Minute})
	if err != nil {
		return verdict{}, err
	}
	return verdict{Refunded: true, Why: fmt.Sprintf("approved by %s: %s", who, receipt)}, nil
}

// pay is the place for the call that pays.
func pay(_ context.Context, o order) (string, error) {
	if o.Cents <= 0 {
		return "", worker.Discard(fmt.Errorf("%d cents cannot be paid", o.Cents))
	}
	return fmt.Sprintf("%d cents for order %d", o.Cents, o.Order), nil
}
