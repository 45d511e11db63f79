package bench

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// What failed says why, also if no call returned an error.
func TestMeasurementsThatFailSayWhy(t *testing.T) {
	ctx := t.Context()
	q, err := open(ctx, server(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	interrupted, interrupt := context.WithCancel(ctx)
	interrupt()
	w := worker.New(q, worker.Config{})
	agentwait.Handle(w, "agent", func(*agentwait.Agent, []byte) ([]byte, error) { return nil, errors.New("no such page") })
	for _, row := range []struct {
		claim, want string
		fail        func() error
	}{
		{"there is no task to claim", "fetch 0: got 0 of 1 tasks", func() error { return workOneByOne(ctx, q, 1) }},
		{"there is no task to run", "no task is ready", func() error { return completeOne(ctx, w) }},
		{"a task fails", `the task did not complete: "fail", no such page`, func() error {
			if _, err := q.Enqueue(ctx, queue.Task{Kind: "agent"}); err != nil {
				t.Fatal(err)
			}
			return completeOne(ctx, w)
		}},
		{"a worker process writes something else", `its first line is "hello\n", want "began"; stderr: `, func() error {
			return hold(ctx, exec.Command("echo", "hello"))
		}},
		{"a worker process ends", `its first line is "", want "began"; stderr: ` + "\nEOF", func() error {
			return hold(ctx, exec.Command("true"))
		}},
		{"the measurement is interrupted", "the worker stopped: context canceled", func() error {
			_, err := runUntil(interrupted, w, nil)
			return err
		}},
	} {
		if err := row.fail(); err == nil || err.Error() != row.want {
			t.Errorf("%s: %v, want %s", row.claim, err, row.want)
		}
	}
}
