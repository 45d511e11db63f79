package typed_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/typed"
	"github.com/curfew-dev/curfew/worker"
)

// The code in docs/how-to/migrate.md is copied from this file, as a test checks.

type EmailArgs struct{ UserID int }

// Email is shared by the programs that enqueue and those that run the tasks.
var Email = typed.Kind[EmailArgs, string]{
	Name:     "email",
	Queue:    "critical",
	Defaults: queue.Defaults{Timeout: 5 * time.Minute, MaxRetries: 5, Backoff: queue.Backoff{Delay: time.Second, Exponential: true}},
}

func send(ctx context.Context, in EmailArgs) (string, error) {
	switch {
	case in.UserID == 0:
		return "", worker.Discard(errors.New("no such user")) // no retry can help
	case worker.Info(ctx).Attempt > 5:
		return "", worker.RetryAfter(time.Hour, errors.New("the server is slow"))
	}
	return fmt.Sprintf("message-%d", in.UserID), nil
}

// logging is middleware of all kinds.
func logging(next worker.Handler) worker.Handler {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		result, err := next(ctx, payload)
		log.Println(worker.Info(ctx).ID, err)
		return result, err
	}
}

// serve is the program that runs the tasks.
func serve(ctx context.Context, rdb redis.UniversalClient) error {
	q, err := queue.Open(ctx, rdb, queue.Config{})
	if err != nil {
		return err
	}
	w := worker.New(q, worker.Config{
		Concurrency:     10,
		Queues:          map[string]int{"critical": 6, "default": 3, "low": 1},
		ShutdownTimeout: 10 * time.Second,
	})
	w.Use(logging)
	Email.Handle(w, send)
	return w.Run(ctx) // until ctx ends: use signal.NotifyContext
}

// produce is the program that enqueues.
func produce(ctx context.Context, q *queue.Queue) error {
	r, err := Email.With(queue.Task{Delay: time.Millisecond, Retention: 24 * time.Hour}).Enqueue(ctx, q, EmailArgs{UserID: 17})
	if err != nil {
		return err
	}
	id, err := Email.Result(ctx, q, r.ID)
	if err != nil {
		return err
	}
	fmt.Println(id)
	return nil
}

// once enqueues one task for each order, however often it is called.
func once(ctx context.Context, q *queue.Queue, order string) error {
	r, err := Email.With(queue.Task{Name: order}).Enqueue(ctx, q, EmailArgs{UserID: 17})
	if errors.Is(err, refusal.ErrConflict) {
		return fmt.Errorf("%s has another message already: %w", order, err)
	}
	if err == nil && !r.New {
		log.Println("this order has a task already:", r.ID)
	}
	return err
}

// look reads, cancels and repeats the task of an order.
func look(ctx context.Context, q *queue.Queue, order string) error {
	id := q.IDOf(order)
	task, err := q.Get(ctx, id)
	if err != nil {
		return err
	}
	if !task.Status.Ended() {
		_, err = q.Cancel(ctx, id, "not needed")
		return err
	}
	_, err = q.Retry(ctx, id, nil) // a new task with the same content
	return err
}

// The programs of docs/how-to/migrate.md, against an embedded server.
func Example_migrate() {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error)
	log.SetOutput(discard{})
	go func() { served <- serve(ctx, server.Client()) }()
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(produce(ctx, q))
	fmt.Println(once(ctx, q, "order-17"), once(ctx, q, "order-17"))
	fmt.Println(Email.Result(ctx, q, q.IDOf("order-17")))
	fmt.Println(look(ctx, q, "order-17"))
	stop()
	fmt.Println(<-served)
	// Output:
	// message-17
	// <nil>
	// <nil> <nil>
	// message-17 <nil>
	// <nil>
	// <nil>
}

// discard drops the log, which would be mixed with the output.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
