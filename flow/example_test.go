package flow_test

import (
	"context"
	"fmt"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
)

func ExampleRead() {
	show := func(ctx context.Context, q *queue.Queue, id string, value any) error {
		r, err := flow.Read(ctx, q, id, true) // true: the parts of the run and the runs that it has called, too
		if err != nil {
			return err
		}
		node, at, sentence := flow.Decides(r)
		fmt.Println(node, at, sentence) // review/approval, 12:30, "The run waits for node approval (review/approval), …"
		fmt.Println(r.Mermaid())        // the graph with phases and the time that is left
		return flow.Resume(ctx, q, id, node, value)
	}
	_ = show
}
