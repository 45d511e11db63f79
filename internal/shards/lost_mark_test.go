package shards

import (
	"context"
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A failover may lose the mark that somebody waits, and no connection of
// the one who waits breaks.
func TestAResultWhoseMarkWasLostIsSeenAllTheSame(t *testing.T) {
	t.Parallel() // it waits for seconds
	s := newStage(t, "redis://"+redistest.Shared(t).Addr, 1)
	r, err := s.q.Enqueue(t.Context(), queue.Task{Kind: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.q.Result(context.Background(), r.ID)
		ended <- err
	}()
	record := s.q.Root(0) + ":task:" + r.ID
	eventually(t, "the task is marked", func() bool { return s.q.Client().HExists(t.Context(), record, "watched").Val() })
	if err := s.q.Client().HDel(t.Context(), record, "watched").Err(); err != nil {
		t.Fatal(err)
	}
	s.work(noop)
	if err := receive(t, ended, "who waits sees the end"); err != nil {
		t.Errorf("Result = %v", err)
	}
}
