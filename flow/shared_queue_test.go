package flow_test

import (
	"context"
	"testing"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// One program follows definitions, and another one runs the leaves. Both take tasks of the same queue, and each passes on what it
// cannot run.
func TestTwoProgramsShareAQueue(t *testing.T) {
	t.Parallel()
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	follows, works := worker.New(q, worker.Config{Concurrency: 5}), worker.New(q, worker.Config{Concurrency: 5})
	flow.Register(follows)
	worker.Handle(works, "x", func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil })
	stored, err := flow.Put(t.Context(), q, []byte(chain(30)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, w := range []*worker.Worker{follows, works} {
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		defer func() { cancel(); <-done }()
	}
	r, err := q.Enqueue(t.Context(), queue.Task{Kind: "flow." + stored.ID})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Result(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	t.Logf("%d times a worker passed a task on", follows.Stats().Released+works.Stats().Released)
}
