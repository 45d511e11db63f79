package bench

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// An interrupt is not an outage.
func TestAnInterruptEndsTheWaitForAPartition(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	l := &Load{marks: make([][]*Mark, 1)}
	if err := l.awaitFlow(ctx, 0, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("awaitFlow = %v, want the end of its context", err)
	}
}

// Without a worker no task ends.
func TestAnInterruptedLoadDoesNotWaitForItsTasks(t *testing.T) {
	q, err := open(t.Context(), server(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	l := StartLoad(ctx, q, "nobody", time.Millisecond)
	enqueued := func() bool {
		stats, err := q.Stats(t.Context())
		return err == nil && len(stats.Queues) > 0
	}
	await.Until(t, "the load enqueues tasks", enqueued)
	interrupt()
	marks := l.Stop()
	if last := marks[0][len(marks[0])-1]; last.Err != nil || !errors.Is(last.EndErr, context.Canceled) {
		t.Errorf("the last task was enqueued with %v and its end was seen with %v, want nil and the end of the context", last.Err, last.EndErr)
	}
}
