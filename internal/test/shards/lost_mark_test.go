package shards

import (
	"context"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A failover can lose the mark that a client waits for the task's result, without breaking the
// connection of that client.
func TestResultReturnsThoughItsMarkWasLost(t *testing.T) {
	t.Parallel() // it waits for seconds
	s := newStage(t, "redis://"+redistest.Shared(t).Addr, 1)
	r, err := s.Q.Enqueue(t.Context(), queue.Task{Kind: "noop"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Q.Result(context.Background(), r.ID)
		ended <- err
	}()
	// The mark is the only content of this task's state.
	state := s.Q.Root(0) + ":state:" + r.ID
	await.Until(t, "the task is marked", func() bool {
		return strings.Contains(s.Q.Client().Get(t.Context(), state).Val(), "\nwatched=1\n")
	})
	if err := s.Q.Client().Del(t.Context(), state).Err(); err != nil {
		t.Fatal(err)
	}
	s.work(noop)
	if err := await.Receive(t, ended, "Result returns"); err != nil {
		t.Errorf("Result = %v", err)
	}
}
