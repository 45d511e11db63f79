package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
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
	ask := claim.Ask{N: 50, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 50}}}
	trip, err := claim.Of(q).Fetch(ctx, 0, "counter", ask)
	done := 0
	for err == nil && len(trip.Claims) > 0 {
		outcomes := completions(trip.Claims)
		done += len(outcomes)
		ask.Seq++
		trip, err = claim.Of(q).Settle(ctx, 0, "counter", queue.NewCall(), outcomes, ask)
	}
	if err == nil && done != n {
		err = fmt.Errorf("claimed %d of %d tasks", done, n)
	}
	return err
}

func workOneByOne(ctx context.Context, q *queue.Queue, n int) error {
	ask := claim.Ask{N: 1, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 1}}}
	for i := range n {
		ask.Seq = int64(1000 + i)
		trip, err := claim.Of(q).Fetch(ctx, 0, "counter", ask)
		if err := enough(len(trip.Claims), 1, err); err != nil {
			return fmt.Errorf("fetch %d: %w", i, err)
		}
		c := trip.Claims[0]
		if _, err := claim.Of(q).Settle(ctx, 0, "counter", queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}}, claim.Ask{}); err != nil {
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
	calls  atomic.Int64 // the trips that call a script; see isCall
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
	total, err := m.commands(ctx)
	if err != nil {
		return err
	}
	m.report.add(name+": round trips", float64(trips)/float64(n), m.of)
	m.report.add(name+": commands", float64(total-commands)/float64(n), m.of)
	m.report.add(name+": allocations", float64(after.Mallocs-before.Mallocs)/float64(n), m.of)
	return nil
}

// commands returns the number of commands that the server has run. It includes the commands in scripts, but not the
// meter's own INFO commands.
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

// countAgents measures three costs:
//
//   - the round trips of an agent with 100 children, from the first line of its handler to its
//     result, without the trips of the children;
//   - the whole cost of an agent with 10 children, divided by its children;
//   - the round trips of calls for 100 children.
func countAgents(ctx context.Context, rdb redis.UniversalClient, m *meter) error {
	for _, c := range []struct {
		fan   int
		count func(context.Context, *queue.Queue, *meter, int) error
	}{{100, countLife}, {10, countFanOut}, {100, countBatches}} {
		q, err := open(ctx, rdb, 1)
		if err == nil {
			err = c.count(ctx, q, m, c.fan)
		}
		if err != nil {
			return fmt.Errorf("agents with %d children: %w", c.fan, err)
		}
	}
	return nil
}

// isCall reports whether a command calls a script. Heartbeats and descriptions do not count: RunOne sends more of
// them than a worker does. Nor does the EVAL that loads a script into a new server.
func isCall(cmd redis.Cmder) bool {
	args := cmd.Args()
	return (cmd.Name() == "fcall" || cmd.Name() == "evalsha") && len(args) > 1 && !slices.Contains(ofLease(), fmt.Sprint(args[1]))
}

// ofLease returns the names of the scripts with which a worker keeps its lease and describes itself, on servers with and
// without Functions.
var ofLease = sync.OnceValue(func() (names []string) {
	for _, functions := range []bool{true, false} {
		library, err := lua.Load(lua.Options{Functions: functions})
		if err != nil {
			panic(err) // the scripts are part of the program
		}
		names = append(names, library.Handle("heartbeat"), library.Handle("describe_worker"))
	}
	return names
})

// countLife counts the round trips of an agent, without its children, which run between its two runs.
func countLife(ctx context.Context, q *queue.Queue, m *meter, fan int) error {
	w := worker.New(q, worker.Config{Queues: map[string]int{"agents": 1}, NoReaper: true})
	var first int64
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ []byte) ([]byte, error) {
		if first == 0 {
			first = m.calls.Load()
		}
		return nil, fanOut(a, fan)
	})
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "agent", Queue: "agents"}); err != nil {
		return err
	}
	if _, err := w.RunOne(ctx); err != nil {
		return err
	}
	before := m.calls.Load()
	if err := workInBatches(ctx, q, fan); err != nil {
		return err
	}
	childrens := m.calls.Load() - before
	if err := completeOne(ctx, w); err != nil {
		return err
	}
	trips := m.calls.Load() - first - childrens
	m.report.add(fmt.Sprintf("%d parallel tasks, first line to result: round trips of the agent", fan), float64(trips), "an agent")
	return nil
}

// completeOne runs one task, and fails unless it completes.
func completeOne(ctx context.Context, w *worker.Worker) error {
	ran, err := w.RunOne(ctx)
	switch {
	case err != nil:
		return err
	case ran == nil:
		return errors.New("no task is ready")
	case ran.Report.Verb != queue.Complete:
		return fmt.Errorf("the task did not complete: %q, %s", ran.Report.Verb, ran.Report.Error)
	}
	return nil
}

// countFanOut counts the whole cost of agents and their children, divided by the number of
// children. One worker runs both.
func countFanOut(ctx context.Context, q *queue.Queue, m *meter, fan int) error {
	const n = 500
	m.of = "a child"
	return m.measure(ctx, fmt.Sprintf("agents of fan-out %d", fan), n*fan, func() error {
		if err := accepted(q.EnqueueAll(ctx, tasks(n, agent))); err != nil {
			return err
		}
		_, err := drainAgents(ctx, q, n, fan, 50)
		return err
	})
}

// countBatches counts the round trips of calls for many children.
func countBatches(ctx context.Context, q *queue.Queue, m *meter, fan int) error {
	w := worker.New(q, worker.Config{Queues: map[string]int{"agents": 1}, NoReaper: true})
	count := func(what string, call func() error) error {
		before := m.calls.Load()
		err := call()
		m.report.add(fmt.Sprintf("%s of %d: round trips", what, fan), float64(m.calls.Load()-before), "a call")
		return err
	}
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ []byte) ([]byte, error) {
		children, names := make([]*agentwait.Future[[]byte], fan), make([]string, fan)
		for i := range children {
			names[i] = fmt.Sprint("c", i)
			children[i] = agentwait.Schedule[[]byte](a, member, queue.Task{ID: names[i], Kind: "member"})
		}
		return nil, errors.Join(
			count("schedule", a.Start),
			count("cancel", func() error { _, err := agentwait.Cancel(a, "enough", children...); return err }),
			count("results", func() error { _, err := claim.Of(q).Children(a, a.ID(), names); return err }))
	})
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "agent", Queue: "agents"}); err != nil {
		return err
	}
	return completeOne(ctx, w)
}

// countFlows counts the whole cost of flow runs, divided by their number of nodes. One worker does all.
func countFlows(ctx context.Context, rdb redis.UniversalClient, m *meter) error {
	const n = 100
	f := &flows{FlowsConfig: FlowsConfig{Concurrency: 50}, rdb: rdb}
	m.of = "a node"
	for _, s := range []shape{chainOf(10), fanOutOf(10)} {
		leaves := newCountdown(n * s.nodes)
		q, w, err := f.prepare(ctx, s, func(span) { leaves.decrement() })
		if err != nil {
			return err
		}
		err = m.measure(ctx, "flows, "+s.name, n*s.nodes, func() error {
			run := func(int) queue.Task { return queue.Task{Kind: "flow." + s.id, Timeout: time.Hour} }
			if err := accepted(q.EnqueueAll(ctx, tasks(n, run))); err != nil {
				return err
			}
			_, err := f.workOff(ctx, q, w, n, s.nodes, leaves)
			return err
		})
		if err != nil {
			return fmt.Errorf("flows, %s: %w", s.name, err)
		}
	}
	return nil
}

//go:embed counts.limits
var countLimits string

// Gate compares counts with the limits in counts.limits. It returns a line for each limit that
// is exceeded, or that has no figure in r.
func Gate(r Report) []string {
	var broken []string
	for line := range strings.Lines(countLimits) {
		line = strings.TrimSpace(line)
		name, limit, ok := strings.Cut(line, " <= ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		bound, err := strconv.ParseFloat(limit, 64)
		f, exists := r.find(name)
		switch {
		case err != nil || !exists:
			broken = append(broken, fmt.Sprintf("counts.limits: %q is not a figure of this benchmark, or its limit is not a number", line))
		case f.Value > bound:
			broken = append(broken, fmt.Sprintf("%s: %.4g %s, the limit is %.4g", name, f.Value, f.Unit, bound))
		}
	}
	return broken
}
