package bench

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

// Counts measures costs that do not depend on the machine: round trips, Redis commands
// (including those inside scripts) and allocations for each task. It measures each step of a
// task's life, the function curfew_enqueue, a whole worker process, agents, and runs of flows.
func Counts(ctx context.Context, rdb redis.UniversalClient) (Report, error) {
	r := Report{Bench: "counts"}
	m := &meter{rdb: rdb, report: &r, of: "a task"}
	rdb.AddHook(m)
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}

	const n = 500
	steps := []struct {
		name string
		do   func() error
	}{
		{"enqueue one", func() error {
			for i := range n {
				if _, err := q.Enqueue(ctx, noop(i)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"work in batches of 50", func() error { return workInBatches(ctx, q, n) }},
		{"enqueue a list of 500", func() error { return accepted(q.EnqueueAll(ctx, tasks(n, noop))) }},
		{"work in batches of 1", func() error { return workOneByOne(ctx, q, n) }},
		{"curfew_enqueue", func() error { return repeat(n, func() error { return enqueueByFunction(ctx, rdb) }) }},
	}
	for _, step := range steps {
		if err := m.measure(ctx, step.name, n, step.do); err != nil {
			return r, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if q, err = open(ctx, rdb, 1); err != nil { // without the tasks of the last step
		return r, err
	}
	if err := countTimeouts(ctx, q, m, n); err != nil {
		return r, err
	}
	const many = 10000
	if err := accepted(q.EnqueueAll(ctx, tasks(many, noop))); err != nil {
		return r, err
	}
	err = m.measure(ctx, "worker at concurrency 50", many, func() error {
		_, err := drain(ctx, q, many, 50)
		return err
	})
	if err != nil {
		return r, err
	}
	if err := countAgents(ctx, rdb, m); err != nil {
		return r, err
	}
	return r, countFlows(ctx, rdb, m)
}

// workInBatches settles 50 tasks and claims the next 50 in each call, as a worker does.
func workInBatches(ctx context.Context, q *queue.Queue, n int) error {
	ask := queue.Ask{N: 50, Seq: 1, Lease: time.Minute, Quotas: []queue.Quota{{Queue: "default", N: 50}}}
	trip, err := q.Attempts().Fetch(ctx, 0, "counter", ask)
	done := 0
	for err == nil && len(trip.Claims) > 0 {
		outcomes := completions(trip.Claims)
		done += len(outcomes)
		ask.Seq++
		trip, err = q.Attempts().Settle(ctx, 0, "counter", queue.NewCall(), outcomes, ask)
	}
	if err == nil && done != n {
		err = fmt.Errorf("claimed %d of %d tasks", done, n)
	}
	return err
}

func workOneByOne(ctx context.Context, q *queue.Queue, n int) error {
	ask := queue.Ask{N: 1, Seq: 1, Lease: time.Minute, Quotas: []queue.Quota{{Queue: "default", N: 1}}}
	for i := range n {
		ask.Seq = int64(1000 + i)
		trip, err := q.Attempts().Fetch(ctx, 0, "counter", ask)
		if err := enough(len(trip.Claims), 1, err); err != nil {
			return fmt.Errorf("fetch %d: %w", i, err)
		}
		c := trip.Claims[0]
		if _, err := q.Attempts().Settle(ctx, 0, "counter", queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}}, queue.Ask{}); err != nil {
			return err
		}
	}
	return nil
}

// countTimeouts measures sweeps that end n tasks whose deadline has passed.
func countTimeouts(ctx context.Context, q *queue.Queue, m *meter, n int) error {
	due := func(int) queue.Task { return queue.Task{Kind: "due", Timeout: time.Millisecond} }
	if err := accepted(q.EnqueueAll(ctx, tasks(n, due))); err != nil {
		return err
	}
	pause(ctx, 20*time.Millisecond)
	return m.measure(ctx, "time out in batches of 100", n, func() error {
		return sweepAll(ctx, q, n, 100)
	})
}

// meter counts the costs of a step. As a hook of the client it counts round trips.
type meter struct {
	rdb    redis.UniversalClient
	report *Report
	of     string // the unit of the figures: a task, an agent
	trips  atomic.Int64
	calls  atomic.Int64 // those of trips that call a script; see isCall
}

// DialHook changes nothing.
func (m *meter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook counts a command as a round trip.
func (m *meter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		m.trips.Add(1)
		if isCall(cmd) {
			m.calls.Add(1)
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts a pipeline as one round trip.
func (m *meter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		m.trips.Add(1)
		return next(ctx, cmds)
	}
}

func (m *meter) measure(ctx context.Context, name string, n int, step func() error) error {
	commands, err := m.commands(ctx)
	if err != nil {
		return err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	trips := m.trips.Load()
	if err := step(); err != nil {
		return err
	}
	trips = m.trips.Load() - trips
	runtime.ReadMemStats(&after)
	later, err := m.commands(ctx)
	if err != nil {
		return err
	}
	m.report.add(name+": round trips", float64(trips)/float64(n), m.of)
	m.report.add(name+": commands", float64(later-commands)/float64(n), m.of)
	m.report.add(name+": allocations", float64(after.Mallocs-before.Mallocs)/float64(n), m.of)
	return nil
}

// commands returns how many commands the server has run, including those of scripts, without
// the INFO commands of the meter itself.
func (m *meter) commands(ctx context.Context) (int64, error) {
	info, err := m.rdb.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	m.trips.Add(-1)
	var sum int64
	for line := range strings.Lines(info) {
		_, rest, ok := strings.Cut(line, ":calls=")
		if !ok || strings.HasPrefix(line, "cmdstat_info") {
			continue
		}
		calls, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(calls, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
