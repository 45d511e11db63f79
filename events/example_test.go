package events_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
)

// A reader stores the cursor behind the events that it has handled, and continues from there.
func ExampleRead() {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	task, err := q.Enqueue(ctx, queue.Task{Kind: "render"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := q.Cancel(ctx, task.ID, "not needed"); err != nil {
		log.Fatal(err)
	}

	cursor := events.Oldest // or the stored cursor
	batch, err := events.Read(ctx, q, cursor, 100, 5*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range batch.Events {
		fmt.Println(e.Kind, e.TaskID == task.ID, e.Fields["reason"])
	}
	cursor = batch.Next
	fmt.Println(cursor != events.Oldest)
	// Output:
	// task_cancelled true cancelled
	// true
}
