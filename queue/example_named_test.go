package queue_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// The id of a task with a name follows from the name, so a program that did not enqueue it can await it.
func ExampleQueue_IDOf() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	for range 2 { // the second task of the name is a repeat
		r, err := q.Enqueue(ctx, queue.Task{Kind: "mail", Name: "order-17"})
		fmt.Println(r.ID, r.New, err)
	}
	record, err := q.Get(ctx, q.IDOf("order-17"))
	fmt.Println(record.Status, err)
	fmt.Println(q.IDOf("orders/17"))
	// Output:
	// 0-n-order-17 true <nil>
	// 0-n-order-17 false <nil>
	// PENDING <nil>
	// 0-e-orders_2f17
}

func ExampleNameOf() {
	fmt.Println(queue.NameOf("0-e-orders_2f17"))
	fmt.Printf("%q\n", queue.NameOf("0-01J9ZK3Q8X4M2C7W5T")) // a task without a name
	// Output:
	// orders/17
	// ""
}

// A producer that may start before the first worker stores the defaults of the kind.
func ExampleQueue_EnsureKind() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	if err := q.EnsureKind(ctx, "render", queue.Defaults{Timeout: time.Minute}); err != nil {
		log.Fatal(err)
	}
	r, err := q.Enqueue(ctx, queue.Task{Kind: "render"})
	if err != nil {
		log.Fatal(err)
	}
	record, err := q.Get(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Deadline.Sub(record.CreatedAt))
	// Output: 1m0s
}

// Wait returns the record of a task when it has ended.
func ExampleQueue_Wait() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	r, err := q.Enqueue(ctx, queue.Task{Kind: "mail"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Cancel(ctx, r.ID, "the order was withdrawn"); err != nil {
		log.Fatal(err)
	}
	record, err := q.Wait(ctx, r.ID)
	fmt.Println(record.Status, record.Error, err)
	// Output: CANCELLED the order was withdrawn <nil>
}
