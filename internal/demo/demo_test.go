package demo

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// begun returns a demo whose second task has begun.
func begun(t *testing.T) *show {
	t.Helper()
	q, err := queue.Open(t.Context(), redistest.Embedded(t).Client(), queue.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &show{q: q, timeout: time.Minute, hung: make(chan struct{}), out: io.Discard}
	close(s.hung)
	return s
}

func TestATaskThatCompletesIsNoTimeout(t *testing.T) {
	s := begun(t)
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("hang", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	if err := s.hang(ctx); err == nil || err.Error() != "the hung task did not time out: it is COMPLETED" {
		t.Errorf("hang = %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// The worker may stop before it has taken the task.
func TestAnInterruptEndsTheDemoBeforeItsTaskBegins(t *testing.T) {
	s := begun(t)
	s.hung = make(chan struct{})
	ctx, interrupt := context.WithCancel(t.Context())
	s.out = writer(func() { interrupt() }) // the task is enqueued
	if err := s.hang(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("hang = %v, want the end of its context", err)
	}
}

// On a busy machine the task can time out before a worker claims it. Then no handler hangs.
func TestATaskThatNobodyTookIsNoDemo(t *testing.T) {
	s := begun(t)
	s.hung, s.timeout = make(chan struct{}), 20*time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reaper.New(s.q, reaper.Config{}).Run(ctx) }()
	want := "the task ended on time, but no worker had taken it within 20ms: give it more with --timeout"
	if err := s.hang(ctx); err == nil || err.Error() != want {
		t.Errorf("hang = %v, want %s", err, want)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// writer calls a function when it is written to.
type writer func()

func (w writer) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}
