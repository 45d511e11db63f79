package races

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestFunctionFlush(t *testing.T) {
	server := redistest.Start(t)
	s := newStage(t, server.Addr, queue.Config{})
	flushes := 0
	operator := harness.Client(t, server.Addr)
	stop := s.Run(func(ctx context.Context) error {
		for flushes < 20 || ctx.Err() == nil {
			if err := errors.Join(operator.FunctionFlush(s.Context()).Err(), operator.ScriptFlush(s.Context()).Err()); err != nil {
				return err
			}
			flushes++
			until(time.Now().Add(500 * time.Microsecond))
		}
		return nil
	})
	w := worker.New(s.Another(), worker.Config{Concurrency: 10, Lease: 15 * time.Second, Beat: 50 * time.Millisecond})
	w.HandleRaw("k", func(_ context.Context, payload []byte) ([]byte, error) { return payload, nil })
	endWorker := s.Run(w.Run)

	var ids []string
	var doomed, cancelled int
	for range rounds(20) {
		tasks := make([]queue.Task, 30)
		for i := range tasks {
			tasks[i] = queue.Task{Kind: "k", Timeout: time.Minute}
		}
		ids = append(ids, s.Enqueue(tasks...)...)
		late := s.Enqueue(queue.Task{Kind: "k", Queue: "nobody", Timeout: 20 * time.Millisecond}, queue.Task{Kind: "k", Queue: "nobody"})
		ids = append(ids, late...)
		doomed++
		c, err := s.Q.Cancel(s.Context(), late[1], "")
		if err != nil || !c.Done {
			t.Errorf("Cancel = %+v, %v", c, err)
		}
		cancelled++
		if _, err := s.Q.Result(s.Context(), ids[len(ids)-3]); err != nil {
			t.Errorf("Result = %v", err)
		}
	}
	await.Until(t, "all tasks have ended", func() bool { return s.zcard("deadlines") == 0 })
	endWorker()
	stop()
	stats := w.Stats()
	t.Logf("%d tasks under %d flushes: %+v", len(ids), flushes, stats)
	if want := int64(len(ids) - doomed - cancelled); stats.Completed != want || stats.Refused+stats.Dropped+stats.Failed+stats.Released != 0 {
		t.Errorf("the worker counts %+v, want %d completed and nothing else", stats, want)
	}
	// On a busy machine a sweep can take longer than a reaper waits. The next sweep does its work.
	if s.Logs.Count("level=ERROR") > s.Logs.Count("context deadline exceeded") {
		t.Errorf("errors were logged:\n%s", s.Logs)
	}
	s.account(ids)
}
