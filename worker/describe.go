package worker

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// describeTimeout bounds one attempt to store the description. After it, the worker tries again at
// the next heartbeat.
const describeTimeout = 2 * time.Second

// maxAbout is the greatest number of bytes that a description can have.
const maxAbout = 4096

// description returns a JSON description of the worker, for inspect.Workers. Its kinds, queues and
// program decide which held tasks the worker can run (lua/task/hold.lua).
func (w *Worker) description(kinds []string, queues map[string]int, strict []string, program string) string {
	host, _ := os.Hostname()
	if len(strict) > 0 {
		queues = nil
	}
	about := map[string]any{
		"name": w.config.Name, "host": host, "pid": os.Getpid(), "concurrency": w.config.Concurrency,
		"queues": queues, "strict": strict, "started_at": time.Now().UnixMilli(),
		"kinds": kinds, "program": program,
	}
	for _, field := range []string{"", "kinds", "queues", "strict"} { // removes one field after the other until the text is short enough
		delete(about, field)
		if text, err := json.Marshal(about); err == nil && len(text) <= maxAbout {
			return string(text)
		}
	}
	return ""
}

// state returns the state that the worker reports.
func (w *Worker) state() queue.WorkerState {
	if w.stopping.Load() {
		return queue.WorkerDraining
	}
	return queue.WorkerRunning
}

// describeEvery is how often a worker describes itself again: a failover can lose its description.
const describeEvery = 30 * time.Second

// describe stores the worker's state and description in the partition, unless Redis has the newest.
// It is called after each heartbeat, and when the state changes. It does not wait for the call,
// because the next heartbeat must not be late.
func (p *partition) describe() {
	p.mu.Lock()
	defer p.mu.Unlock()
	hasLease := !p.renewed.IsZero() // Redis refuses the description of a worker without a lease
	if hasLease && !p.describing && (p.described != p.w.state() || time.Since(p.describedAt) > describeEvery) {
		p.describing = true
		p.w.background.Go(p.sendDescription)
	}
}

// sendDescription sends the newest state, and once more if the state has changed meanwhile. Only one
// goroutine of a partition runs it, so that the newest state is sent last. If the call fails, the
// next heartbeat starts it again.
func (p *partition) sendDescription() {
	for changed := true; changed; {
		state := p.w.state()
		ctx, cancel := context.WithTimeout(p.w.callCtx, describeTimeout)
		err := claim.Of(p.w.q).Describe(ctx, p.number, p.w.id, state, p.w.about)
		cancel()
		p.mu.Lock()
		if err == nil {
			p.described, p.describedAt = state, time.Now()
		}
		changed = state != p.w.state()
		p.describing = changed
		p.mu.Unlock()
		if err == nil {
			p.callWorked(descriptions)
		} else {
			p.callFailed(descriptions, "The worker could not store its description; it tries again after the next heartbeat", err)
		}
	}
}

// stopRequested shuts the worker down, as the end of Run's context does.
func (w *Worker) stopRequested() {
	if !w.stopping.Load() {
		w.endOnce.Do(func() {
			w.log.Info("A stop of the worker was requested: it takes no more tasks and waits for its handlers", "worker", w.id)
			w.end()
		})
	}
}
