package inspect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Figures counts how the tasks of each kind have ended.
func ExampleFigures() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	late, err := q.Enqueue(ctx, queue.Task{Kind: "mail", Timeout: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	q.Result(ctx, late.ID) // waits until the task has timed out

	figures, err := inspect.Figures(ctx, q)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range figures {
		for _, e := range f.Ends {
			fmt.Println(f.Kind, f.Queue, e.Status, e.Reason, e.TimeoutType, e.Count)
		}
	}
	// Output: mail default FAILED timeout execution 1
}
