package inspect_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// How did tasks of each kind end, ever?
func ExampleFigures() {
	ctx := context.Background()
	q, server := start(ctx)
	defer server.Close()
	late, err := q.Enqueue(ctx, queue.Task{Kind: "mail", Timeout: time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}
	q.Result(ctx, late.ID) // waits until its time is up

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
