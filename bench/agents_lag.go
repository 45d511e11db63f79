package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// WakeLag measures how long an agent takes to run again after its last member has ended. The
// lag begins just before the handler of the last member returns. It ends when the agent's
// handler is called again. Agents and members run in this process, so both instants are of one
// monotonic clock. The lag includes four things: the report of the member's end, the wake, the
// claim of the agent, and the call that reads its journal and its members' results.
//
// It runs n agents with fan members each, one at a time. If load is not 0, the same worker
// settles load plain tasks a second beside them.
func WakeLag(ctx context.Context, rdb redis.UniversalClient, n, fan, load int) (Report, error) {
	r := Report{Bench: "agents"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newSleepers(q, fan)
	stopped := make(chan error, 1)
	go func() { stopped <- s.w.Run(ctx) }()

	name := "wake lag, idle"
	var poured <-chan error
	if load > 0 {
		name = fmt.Sprintf("wake lag beside %d tasks/s", load)
		poured = pour(ctx, q, load)
	}
	start, before := time.Now(), s.plain.Load()
	for len(s.found) < n {
		if _, err := q.Enqueue(ctx, agent(0)); err != nil {
			return r, err
		}
		select {
		case lag := <-s.lags:
			s.found = append(s.found, lag)
		case err := <-stopped:
			return r, stoppedEarly(ctx, err)
		case err := <-poured:
			return r, fmt.Errorf("the load stopped: %w", err)
		}
		pause(ctx, 2*time.Millisecond) // long enough for the worker to be idle again
	}
	r.percentiles(name, s.found)
	if load > 0 {
		r.add("worked off beside it", float64(s.plain.Load()-before)/time.Since(start).Seconds(), "tasks/s")
	}
	stop()
	return r, <-stopped
}

// sleepers is a worker whose agents wait for members and record how late they were woken.
type sleepers struct {
	w     *worker.Worker
	plain atomic.Int64 // tasks of the load that ran
	ended atomic.Int64 // when the last member ended, in ns since begun
	begun time.Time    // instants count from here
	lags  chan time.Duration
	found []time.Duration
}

func newSleepers(q *queue.Queue, fan int) *sleepers {
	s := &sleepers{w: worker.New(q, worker.Config{Concurrency: 50}), begun: time.Now(), lags: make(chan time.Duration, 1)}
	s.w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) {
		s.plain.Add(1)
		return nil, nil
	})
	s.w.HandleRaw("member", func(context.Context, []byte) ([]byte, error) {
		s.ended.Store(int64(time.Since(s.begun)))
		return nil, nil
	})
	agentwait.Handle(s.w, "agent", func(a *agentwait.Agent, _ []byte) ([]byte, error) {
		called := time.Since(s.begun)
		err := fanOut(a, fan)
		if err == nil {
			s.lags <- called - time.Duration(s.ended.Load())
		}
		return nil, err
	})
	return s
}

// pour enqueues load plain tasks a second, as one list every 10 ms, until ctx ends. The channel
// gets an error if an enqueue fails, and is never closed.
func pour(ctx context.Context, q *queue.Queue, load int) <-chan error {
	failed := make(chan error, 1)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		start, sent := time.Now(), 0
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			due := int(time.Since(start).Seconds()*float64(load)) - sent
			sent += due
			if err := accepted(q.EnqueueAll(ctx, tasks(due, noop))); err != nil && ctx.Err() == nil {
				failed <- err
				return
			}
		}
	}()
	return failed
}
