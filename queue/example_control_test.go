package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// A person has a day to approve. Callers that wait for the result get it at once, or a timeout at
// the end of the day.
func ExampleQueue_Resolve() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	approval, err := q.Enqueue(ctx, queue.Task{Kind: "approval", Promise: true, Timeout: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	yes, err := q.Resolve(ctx, approval.ID, []byte("yes"))
	fmt.Println(yes.Done, yes.Status, err)
	late, err := q.Reject(ctx, approval.ID, "too expensive")
	fmt.Println(late.Done, late.Status, string(late.Result), err)
	result, err := q.Result(ctx, approval.ID)
	fmt.Println(string(result), err)
	// Output:
	// true COMPLETED <nil>
	// false COMPLETED yes <nil>
	// yes <nil>
}

// A hook is a task that is enqueued when another one ends.
func ExampleHooks() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	export, err := q.Enqueue(ctx, queue.Task{Kind: "export", MaxRetries: 0,
		Hooks: queue.Hooks{OnFailure: queue.Hook{Kind: "alert", Queue: "urgent"}}})
	if err != nil {
		log.Fatal(err)
	}
	work(ctx, q, "export", "", errors.New("disk full"))

	hook, err := q.Get(ctx, export.ID+"!failure")
	if err != nil {
		log.Fatal(err)
	}
	var ended queue.HookPayload
	if err := json.Unmarshal(hook.Payload, &ended); err != nil {
		log.Fatal(err)
	}
	fmt.Println(hook.Kind, hook.Queue, hook.Status, ended.TaskID == export.ID, ended.Error)
	// Output: alert urgent PENDING true disk full
}

// The defaults of a kind apply to tasks for which the producer sets nothing else.
func ExampleQueue_DefineKind() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	err := q.DefineKind(ctx, "render", queue.Defaults{Timeout: time.Minute, MaxRetries: 3,
		Backoff: queue.Backoff{Delay: time.Second, Exponential: true, Jitter: 0.2}})
	if err != nil {
		log.Fatal(err)
	}
	r, err := q.Enqueue(ctx, queue.Task{Kind: "render"})
	if err != nil {
		log.Fatal(err)
	}
	task, err := q.Get(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Deadline.Sub(task.CreatedAt), task.MaxRetries)
	// Output: 1m0s 3
}

func ExampleQueue_Pause() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	before, err := q.Pause(ctx, "default") // a queue without tasks can be paused, and Known is false
	fmt.Println(before.Known, err)
	r, err := q.Enqueue(ctx, queue.Task{Kind: "k"})
	if err != nil {
		log.Fatal(err)
	}
	work(ctx, q, "k", "", nil)
	task, err := q.Get(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Status)
	after, err := q.Resume(ctx, "default")
	fmt.Println(after.Ready, err)
	// Output:
	// false <nil>
	// PENDING
	// 1 <nil>
}

// A queue runs at most 10 tasks at once and gives at most 100 a minute, over all workers.
func ExampleQueue_LimitRate() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	if _, err := q.LimitRunning(ctx, "mail", 10); err != nil {
		log.Fatal(err)
	}
	if _, err := q.LimitRate(ctx, "mail", queue.Rate{N: 100, Per: time.Minute, Burst: 5}); err != nil {
		log.Fatal(err)
	}
	_, err := q.LimitRate(ctx, "mail", queue.Rate{N: 0, Per: time.Minute})
	fmt.Println(errors.Is(err, refusal.ErrInvalid), err)
	// Output: true limit rate: rate 0 must be at least 1: to stop a queue, Pause it; the zero Rate is no limit
}

// A producer that meets a full queue tries again later.
func ExampleQueue_LimitLength() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	if _, err := q.LimitLength(ctx, "mail", 1); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		_, err := q.Enqueue(ctx, queue.Task{Queue: "mail", Kind: "letter"})
		fmt.Println(errors.Is(err, refusal.ErrQueueFull), err)
	}
	// Output:
	// false <nil>
	// true enqueue: the queue is full: mail has reached its maximum length of 1 in partition 0: enqueue the task again later, or raise the length with `curfew queue limit mail --length`
}

// Retry runs a failed task again as a new task, whose RetryOf is the id of the old one.
func ExampleQueue_Retry() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	first, err := q.Enqueue(ctx, queue.Task{Kind: "import", Payload: []byte("17")})
	if err != nil {
		log.Fatal(err)
	}
	work(ctx, q, "import", "", errors.New("the file is locked"))
	second, err := q.Retry(ctx, first.ID, func(t *queue.Task) { t.Timeout = time.Hour })
	if err != nil {
		log.Fatal(err)
	}
	task, err := q.Get(ctx, second.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.RetryOf == first.ID, string(task.Payload), task.Deadline.Sub(task.CreatedAt))
	// Output: true 17 1h0m0s
}

// Delete removes an ended task before its retention is over, but not within a minute after its end.
func ExampleQueue_Delete() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	r, err := q.Enqueue(ctx, queue.Task{Kind: "import"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = q.Delete(ctx, r.ID)
	fmt.Println(errors.Is(err, refusal.ErrNotEnded))

	work(ctx, q, "import", "", errors.New("the file is locked"))
	task, err := q.Get(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	deleted, err := q.Delete(ctx, r.ID)
	fmt.Println(deleted.RemovedAt.Sub(task.CompletedAt), err)
	// Output:
	// true
	// 1m0s <nil>
}

// Drain cancels the tasks in line. Running tasks continue.
func ExampleQueue_Drain() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	for range 3 {
		if _, err := q.Enqueue(ctx, queue.Task{Kind: "k"}); err != nil {
			log.Fatal(err)
		}
	}
	n, err := q.Drain(ctx, "default", "wrong release")
	fmt.Println(n, err)
	// Output: 3 <nil>
}

// Configure changes which events the namespace writes, for all programs and without a restart.
func ExampleQueue_Configure() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	fmt.Println(q.Configure(ctx, queue.Settings{Events: queue.EventsAll}))
	fmt.Println(q.Configure(ctx, queue.Settings{Figures: "maybe"}))
	// Output:
	// <nil>
	// configure: figures "maybe" must be on or off
}
