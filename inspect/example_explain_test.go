package inspect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Explain says why a promise is not settled, and how long it can stay so.
func ExampleExplain() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()

	approval, err := q.Enqueue(ctx, queue.Task{Kind: "approval", Promise: true, Timeout: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	question, err := q.Enqueue(ctx, queue.Task{Kind: "question", Promise: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{approval.ID, question.ID} {
		e, err := inspect.Explain(ctx, q, id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Kind, e.Status, e.Why, e.Bound.Kind, e.Bound.At.Equal(approval.Deadline))
	}
	// Output:
	// approval PENDING promise deadline true
	// question PENDING promise none false
}
