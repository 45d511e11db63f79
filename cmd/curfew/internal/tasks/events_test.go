package tasks

import (
	"bytes"
	"context"
	"testing"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The cursor of the oldest event is empty, so there is no argument of --from to print.
func TestAnInterruptBeforeTheFirstEventPrintsNoCursor(t *testing.T) {
	q := queuetest.Open(t, redistest.Embedded(t).Client(), queue.Config{Events: queue.EventsAll})
	queuetest.Enqueue(t, q, queue.Task{Kind: "k"})
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for name, tell := range map[string]teller{"text": tellText, "json": newTellJSON()} {
		var out bytes.Buffer
		if err := follow(ctx, q, events.Oldest, 0, true, &out, tell); err != nil || out.Len() > 0 {
			t.Errorf("%s: %v, %q, want no output", name, err, &out)
		}
	}
}
