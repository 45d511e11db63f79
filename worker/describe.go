package worker

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// describeTimeout bounds how long the worker tries to describe itself.
const describeTimeout = 2 * time.Second

// maxAbout is the most bytes that a description may have.
const maxAbout = 4096

// about describes the worker in JSON, for inspect.Workers.
func (w *Worker) about() string {
	host, _ := os.Hostname()
	queues := w.config.Queues
	if len(w.config.Strict) > 0 {
		queues = nil
	}
	about := map[string]any{
		"name": w.config.Name, "host": host, "pid": os.Getpid(), "concurrency": w.config.Concurrency,
		"queues": queues, "strict": w.config.Strict, "started_at": time.Now().UnixMilli(),
		"kinds": slices.Sorted(maps.Keys(w.handlers)),
	}
	for _, long := range []string{"", "kinds", "queues", "strict"} { // left out one after the other until it fits
		delete(about, long)
		if text, err := json.Marshal(about); err == nil && len(text) <= maxAbout {
			return string(text)
		}
	}
	return ""
}

// describe says in a partition what the worker does, and does not wait for it: a heartbeat must not
// be late. If it fails, people read what was said before.
func (p *partition) describe(state queue.WorkerState, about string) {
	p.w.background.Go(func() {
		ctx, cancel := context.WithTimeout(p.w.callCtx, describeTimeout)
		defer cancel()
		if err := p.w.q.Attempts().Describe(ctx, p.number, p.w.id, state, about); err != nil && ctx.Err() == nil {
			p.w.logError(p.number, "The worker could not describe itself", err)
		}
	})
}

// askedToStop ends the worker as the end of Run's context does.
func (w *Worker) askedToStop() {
	if !w.stopping.Load() {
		w.endOnce.Do(func() {
			w.log.Info("The worker is asked to stop: it finishes what it has")
			w.end()
		})
	}
}
