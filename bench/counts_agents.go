package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// countAgents measures three costs:
//
//   - the round trips of an agent with 100 children, from the first line of its handler to its
//     result, without those of the children;
//   - the whole cost of an agent with 10 children, divided by its children;
//   - the round trips of calls for 100 children.
func countAgents(ctx context.Context, rdb redis.UniversalClient, m *meter) error {
	for _, of := range []struct {
		fan   int
		count func(context.Context, *queue.Queue, *meter, int) error
	}{{100, countLife}, {10, countFanOut}, {100, countBatches}} {
		q, err := open(ctx, rdb, 1)
		if err == nil {
			err = of.count(ctx, q, m, of.fan)
		}
		if err != nil {
			return fmt.Errorf("agents with %d children: %w", of.fan, err)
		}
	}
	return nil
}

// isCall reports whether a command calls a script. Heartbeats do not count: RunOne sends more of
// them than a worker does. Nor does the EVAL that loads a script into a new server.
func isCall(cmd redis.Cmder) bool {
	args := cmd.Args()
	return (cmd.Name() == "fcall" || cmd.Name() == "evalsha") && len(args) > 1 && !slices.Contains(heartbeats(), fmt.Sprint(args[1]))
}

// heartbeats returns the two names of the heartbeat script, on servers with and without Functions.
var heartbeats = sync.OnceValue(func() (names []string) {
	for _, functions := range []bool{true, false} {
		library, err := lua.Load(lua.Options{Functions: functions})
		if err != nil {
			panic(err) // the scripts are part of the program
		}
		names = append(names, library.Handle("heartbeat"))
	}
	return names
})

// countLife counts the round trips of an agent, without those of its children, which run
// between its two runs.
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
	own := m.calls.Load() - first - childrens
	m.report.add(fmt.Sprintf("%d parallel tasks, first line to result: round trips of the agent", fan), float64(own), "an agent")
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
			count("results", func() error { _, err := q.Attempts().Children(a, a.ID(), names); return err }))
	})
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "agent", Queue: "agents"}); err != nil {
		return err
	}
	return completeOne(ctx, w)
}

// countFlows counts the whole cost of runs of definitions, divided by the number of their nodes. One worker does all.
func countFlows(ctx context.Context, rdb redis.UniversalClient, m *meter) error {
	const n = 100
	f := &flows{FlowsConfig: FlowsConfig{Concurrency: 50}, rdb: rdb}
	m.of = "a node"
	for _, s := range []shape{chainOf(10), fanOutOf(10)} {
		leaves := newCountdown(n * s.nodes)
		q, w, err := f.prepare(ctx, s, func(span) { leaves.one() })
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
