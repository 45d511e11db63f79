package queue_test

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The hooks of tasks that Drain cancels stay, also if they join the same line: in front of other tasks, and behind them.
func TestDrainLeavesTheHooksOfItsTasks(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	const n = 1200 // of more than two calls
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Queue: "q", Priority: i % 4, Hooks: queue.Hooks{OnCancel: queue.Hook{Kind: "cleanup", Queue: "q"}}}
	}
	for from := 0; from < n; from += 400 {
		if _, err := q.EnqueueAll(t.Context(), tasks[from:from+400]); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := q.Drain(t.Context(), "q", "over")
	if err != nil || sum != n {
		t.Errorf("Drain = %d, %v, want %d", sum, err, n)
	}
	stats, err := q.Stats(t.Context())
	if err != nil || stats.Queues[0].Ready != n || stats.Queues[0].Cancelled != n {
		t.Errorf("%v, %+v, want %d hooks in line and %d cancelled tasks", err, stats.Queues, n, n)
	}
	if sum, err := q.Drain(t.Context(), "q", "over"); err != nil || sum != n {
		t.Errorf("Drain of the hooks = %d, %v, want %d", sum, err, n)
	}
}
