package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestMisuse(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	noop := raw(func(context.Context) error { return nil })

	t.Run("an invalid registration panics with a text that says why", func(t *testing.T) {
		w := worker.New(s.q, worker.Config{})
		w.HandleRaw("known", noop)
		panics(t, `kind "known" has a handler already`, func() { w.HandleRaw("known", noop) })
		panics(t, "needs a kind", func() { w.HandleRaw("", noop) })
		panics(t, "is nil", func() { w.HandleRaw("nil", nil) })
		stop := s.run(w)
		await.Until(t, "the worker runs", func() bool { stats, _ := s.q.Stats(s.ctx); return stats.Workers == 1 })
		panics(t, "before Run", func() { w.HandleRaw("late", noop) })
		panics(t, "before Run", func() { w.Use() })
		stop()
		if err := w.Run(s.ctx); err == nil || !strings.Contains(err.Error(), "before") {
			t.Errorf("the second Run = %v, want an error that it was called before", err)
		}
	})

	t.Run("an invalid config is refused before anything starts", func(t *testing.T) {
		for _, c := range []struct {
			config worker.Config
			why    string
		}{
			{worker.Config{Concurrency: -1}, "Concurrency"},
			{worker.Config{ShutdownTimeout: -1}, "ShutdownTimeout"},
			{worker.Config{Lease: -1}, "Lease"},
			{worker.Config{Lease: time.Millisecond}, "Lease"},
			{worker.Config{Lease: time.Second, Beat: time.Second}, "Beat"},
			{worker.Config{Queues: map[string]int{"a": 0}}, `"a"`},
			{worker.Config{Queues: map[string]int{"a": 1}, Strict: []string{"b"}}, "not both"},
			{worker.Config{Strict: slices.Repeat([]string{"a"}, 257)}, "a call reads 256 in their order"},
		} {
			s.refuses(worker.New(s.q, c.config), c.why)
		}
	})

	t.Run("a worker without handlers is refused", func(t *testing.T) {
		if err := worker.New(s.q, worker.Config{}).Run(s.ctx); err == nil || !strings.Contains(err.Error(), "no handler") {
			t.Errorf("Run = %v", err)
		}
	})

	t.Run("a worker with any name runs tasks", func(t *testing.T) {
		s := newStage(t, shared(t), 1)
		for _, name := range []string{"two words", "_é", "-", strings.Repeat("x", 1000)} {
			w := worker.New(s.q, worker.Config{Name: name})
			w.HandleRaw("k", noop)
			id := s.enqueue(queue.Task{Kind: "k"})
			if ran, err := w.RunOne(s.ctx); err != nil || ran == nil || ran.Claim.ID != id {
				t.Errorf("RunOne of a worker named %.20q = %v, %v, want %s", name, ran, err, id)
			}
		}
	})

	t.Run("no two workers have the same id", func(t *testing.T) {
		a, b := worker.New(s.q, worker.Config{Name: "x y"}), worker.New(s.q, worker.Config{Name: "x y"})
		if a.ID() == b.ID() || !strings.HasPrefix(a.ID(), "x_y-") {
			t.Errorf("ids %s and %s", a.ID(), b.ID())
		}
	})
}

func panics(t *testing.T, why string, f func()) {
	t.Helper()
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), why) {
			t.Errorf("panic %v, want one with %q", v, why)
		}
	}()
	f()
}
