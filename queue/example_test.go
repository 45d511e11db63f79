package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// start opens a namespace on an embedded server, so that the examples need no other process. Your
// program calls queue.Connect("redis://localhost:6379").
func start(ctx context.Context) (*queue.Queue, *curfewtest.Server) {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return q, server
}

// work runs the next task, whose handler returns result and err. Your program calls worker.Worker.Run.
func work(ctx context.Context, q *queue.Queue, kind, result string, err error) {
	w := worker.New(q, worker.Config{})
	w.HandleRaw(kind, func(context.Context, []byte) ([]byte, error) { return []byte(result), err })
	if _, err := w.RunOne(ctx); err != nil {
		log.Fatal(err)
	}
}

func Example() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	r, err := q.Enqueue(ctx, queue.Task{Kind: "render", Payload: []byte("index"), Timeout: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		work(ctx, q, "render", "index.png", nil)
	}()
	result, err := q.Result(ctx, r.ID)
	fmt.Println(string(result), err)
	<-worked
	// Output: index.png <nil>
}

func ExampleOpen() {
	ctx := context.Background()
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	// The first Open of a namespace fixes its number of partitions.
	q, err := queue.Open(ctx, server.Client(), queue.Config{Namespace: "shop", Partitions: 4})
	fmt.Println(q, err)
	q, err = queue.Open(ctx, server.Client(), queue.Config{Namespace: "shop"})
	fmt.Println(q, err)
	_, err = queue.Open(ctx, server.Client(), queue.Config{Namespace: "shop", Partitions: 8})
	fmt.Println(errors.Is(err, refusal.ErrPartitions))
	// Output:
	// curfew namespace shop (4 partitions) <nil>
	// curfew namespace shop (4 partitions) <nil>
	// true
}

// Only the first task with an idempotency key is stored. An invalid task is refused.
func ExampleQueue_Enqueue() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	order := queue.Task{Kind: "mail", Payload: []byte("order 17"), IdempotencyKey: "order 17"}
	first, err := q.Enqueue(ctx, order)
	fmt.Println(first.New, err)
	again, err := q.Enqueue(ctx, order)
	fmt.Println(again.New, again.ID == first.ID, err)

	order.Payload = []byte("order 18")
	_, err = q.Enqueue(ctx, order)
	fmt.Println(errors.Is(err, refusal.ErrConflict))

	_, err = q.Enqueue(ctx, queue.Task{Kind: "mail", Timeout: -time.Second})
	fmt.Println(err)
	// Output:
	// true <nil>
	// false true <nil>
	// true
	// enqueue: timeout -1s must be positive; leave it out for none
}

func ExampleQueue_EnqueueAll() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	receipts, err := q.EnqueueAll(ctx, []queue.Task{
		{Kind: "mail", Priority: 3},
		{Kind: "mail", Delay: time.Hour},
		{Kind: "mail", Deadline: time.UnixMilli(1)}, // only Redis can check that this is in the past
	})
	if err != nil {
		log.Fatal(err) // each receipt with an Err says whether its task was stored
	}
	for _, r := range receipts {
		fmt.Println(r.New, errors.Is(r.Err, refusal.ErrInvalid))
	}
	// Output:
	// true false
	// true false
	// false true
}

func ExampleQueue_Get() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	r, err := q.Enqueue(ctx, queue.Task{Kind: "mail", Payload: []byte("order 17"), Delay: time.Hour})
	if err != nil {
		log.Fatal(err)
	}

	task, err := q.Get(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Kind, string(task.Payload), task.Status, task.AvailableAt.Sub(task.CreatedAt))

	_, err = q.Get(ctx, "0-01J9ZK3Q8X4M2C7W5T")
	fmt.Println(err, errors.Is(err, refusal.ErrNotFound))
	// Output:
	// mail order 17 PENDING 1h0m0s
	// get 0-01J9ZK3Q8X4M2C7W5T: no such task true
}

// A task that has ended is not changed, and the Cancellation says how it ended.
func ExampleQueue_Cancel() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	r, err := q.Enqueue(ctx, queue.Task{Kind: "mail"})
	if err != nil {
		log.Fatal(err)
	}

	c, err := q.Cancel(ctx, r.ID, "the order was withdrawn")
	fmt.Println(c.Done, c.Status, err)
	c, err = q.Cancel(ctx, r.ID, "")
	fmt.Println(c.Done, c.Status, c.Error, err)
	// Output:
	// true CANCELLED <nil>
	// false CANCELLED the order was withdrawn <nil>
}

// The type of the error says how a task ended.
func ExampleQueue_Result() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	printResult := func(r queue.Receipt, err error) {
		if err != nil {
			log.Fatal(err)
		}
		result, err := q.Result(ctx, r.ID)
		var late *queue.TaskTimedOutError
		var failed *queue.TaskFailedError
		switch {
		case err == nil:
			fmt.Printf("%s\n", result)
		case errors.As(err, &late):
			fmt.Println("it timed out")
		case errors.As(err, &failed):
			fmt.Println("it failed:", failed.Err)
		default:
			fmt.Println(err)
		}
	}

	// No worker and no reaper runs here. The task times out even so.
	printResult(q.Enqueue(ctx, queue.Task{Kind: "render", Timeout: 10 * time.Millisecond}))

	r, err := q.Enqueue(ctx, queue.Task{Kind: "render"})
	work(ctx, q, "render", "", errors.New("no such page"))
	printResult(r, err)

	r, err = q.Enqueue(ctx, queue.Task{Kind: "render"})
	work(ctx, q, "render", "index.png", nil)
	printResult(r, err)
	// Output:
	// it timed out
	// it failed: no such page
	// index.png
}

func ExampleQueue_Stats() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	if _, err := q.EnqueueAll(ctx, []queue.Task{{Kind: "mail"}, {Kind: "mail"}, {Kind: "mail", Queue: "low", Delay: time.Hour}}); err != nil {
		log.Fatal(err)
	}
	work(ctx, q, "mail", "", nil)

	stats, err := q.Stats(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, line := range stats.Queues {
		fmt.Println(line.Queue, line.Ready, line.Enqueued, line.Completed)
	}
	fmt.Println("delayed:", stats.Delayed)
	// Output:
	// default 1 2 1
	// low 0 1 0
	// delayed: 1
}

func ExampleConnect() {
	rdb, err := queue.Connect("redis://:a+b/c@localhost:6379/0")
	fmt.Println(rdb == nil, errors.Is(err, refusal.ErrInvalid)) // write the slash in the password as %2F

	rdb, err = queue.Connect("redis://:a+b%2Fc@localhost:6379/0")
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	// Output: true true
}

// A cluster is named by some of its nodes.
func ExampleConnect_cluster() {
	ctx := context.Background()

	rdb, err := queue.Connect("redis+cluster://user:password@10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379")
	if err != nil {
		log.Fatal(err)
	}
	defer rdb.Close()
	q, err := queue.Open(ctx, rdb, queue.Config{Partitions: 16})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(q.Namespace())
}
