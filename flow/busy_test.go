package flow_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// busy is a run that would compute for ten minutes, which is longer than a test waits: a cycle of nodes that take no time.
const busy = `{"id":"busy","initial":"a","timeout":"%s","max_nodes":1000000,"inputs":{"parameters":[{"name":"t"}]},"nodes":[{"id":"a","action_id":"u"},{"id":"b","action_id":"e"}],
	"actions":[{"id":"e","kind":"echo"},{"id":"u","kind":"update_context","implementation":{"values":{"state.n":"{{ len(lower(upper(lower(upper(inputs.parameters.t))))) }}"}}}],
	"transitions":[{"from":"a","to":"b"},{"from":"b","to":"a"}]}`

// A worker leaves a run that computes when the time of the run is over, and when the worker stops.
func TestAWorkerLeavesARunThatComputes(t *testing.T) {
	payload := `{"parameters":{"t":"` + strings.Repeat("x", 400_000) + `"}}`
	t.Run("the time of the run", func(t *testing.T) {
		s := newStage(t)
		s.put(fmt.Sprintf(busy, "300ms"))
		run := s.enqueue("flow.busy", payload)
		w := worker.New(s.q, worker.Config{Concurrency: 1, ShutdownTimeout: time.Millisecond, ShutdownGrace: time.Minute})
		flow.Register(w)
		ran := make(chan struct{}, 1)
		worker.Handle(w, "next", func(context.Context, any) (any, error) { ran <- struct{}{}; return nil, nil })
		s.works(w)
		if r := s.end(run); !r.TimedOut {
			t.Errorf("the run is %s: %s", r.Status, r.Error)
		}
		s.enqueue("next", "")
		await.Receive(t, ran, "the worker, which has one slot, runs the next task")
	})
	t.Run("the worker", func(t *testing.T) {
		s := newStage(t)
		s.put(fmt.Sprintf(busy, "1h"))
		run := s.enqueue("flow.busy", payload)
		w := worker.New(s.q, worker.Config{Concurrency: 1, ShutdownTimeout: time.Millisecond, ShutdownGrace: time.Minute})
		flow.Register(w)
		stop := s.works(w)
		await.Until(t, "the run is claimed", func() bool { return s.get(run).Status == queue.Running })
		stop()
		if r := s.get(run); r.Status.Ended() || r.Retries > 0 {
			t.Errorf("the run is %s after %d retries: %s%s", r.Status, r.Retries, r.Error, r.LastError)
		}
	})
}

// works lets a worker run until stop is called, which returns when the worker has ended.
func (s *stage) works(w *worker.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := await.Receive(s.t, done, "the end of the worker"); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(stop)
	return stop
}
