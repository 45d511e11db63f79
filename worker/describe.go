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

// describeTimeout bounds how long the worker tries to store its description.
const describeTimeout = 2 * time.Second

// maxAbout is the greatest number of bytes that a description can have.
const maxAbout = 4096

// about returns a description of the worker in JSON, for inspect.Workers.
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
	for _, long := range []string{"", "kinds", "queues", "strict"} { // fields are left out until the text is short enough
		delete(about, long)
		if text, err := json.Marshal(about); err == nil && len(text) <= maxAbout {
			return string(text)
		}
	}
	return ""
}

// describe stores the worker's state and description in a partition. It does not wait for the call, so
// that no heartbeat is late. If the call fails, inspect.Workers returns the previous description.
func (p *partition) describe(state queue.WorkerState, about string) {
	p.w.background.Go(func() {
		// One call after the other, or a slow first one would overwrite that the worker drains.
		p.describing.Lock()
		defer p.describing.Unlock()
		if p.w.stopping.Load() {
			state = queue.WorkerDraining
		}
		ctx, cancel := context.WithTimeout(p.w.callCtx, describeTimeout)
		defer cancel()
		if err := p.w.q.Attempts().Describe(ctx, p.number, p.w.id, state, about); err != nil && ctx.Err() == nil {
			p.w.logError(p.number, "The worker could not store its description", err)
		}
	})
}

// stopRequested shuts the worker down, as the end of Run's context does.
func (w *Worker) stopRequested() {
	if !w.stopping.Load() {
		w.endOnce.Do(func() {
			w.log.Info("A stop of the worker was requested: it takes no more tasks and waits for its handlers")
			w.end()
		})
	}
}
