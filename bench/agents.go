package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// AgentRate measures how many agents a second one worker process completes: n agents with fan
// children each, whose handlers do nothing. The time is taken from the start of the worker,
// when all agents are in line, until the last of them is settled. One worker runs agents and
// children.
//
// For comparison it first measures as many plain tasks as the agents need claims: one for each
// child and two for each agent.
func AgentRate(ctx context.Context, rdb redis.UniversalClient, n, fan, concurrency int) (Report, error) {
	r := Report{Bench: "agents"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	plain := n * (fan + 2)
	if err := accepted(q.EnqueueAll(ctx, tasks(plain, noop))); err != nil {
		return r, err
	}
	took, err := drain(ctx, q, plain, concurrency)
	if err != nil {
		return r, err
	}
	r.add("beside: plain tasks drained", float64(plain)/took.Seconds(), "tasks/s")
	if q, err = open(ctx, rdb, 1); err != nil {
		return r, err
	}
	if err := accepted(q.EnqueueAll(ctx, tasks(n, agent))); err != nil {
		return r, err
	}
	before, err := cpu(ctx, rdb)
	if err != nil {
		return r, err
	}
	if took, err = drainAgents(ctx, q, n, fan, concurrency); err != nil {
		return r, err
	}
	after, err := cpu(ctx, rdb)
	r.add("agents", float64(n)/took.Seconds(), "agents/s")
	r.add("their children", float64(n*fan)/took.Seconds(), "tasks/s")
	r.add("time of Redis an agent", (after[0]-before[0])/float64(n)*1e6, "µs")
	r.add("time of the worker an agent", (after[1]-before[1])/float64(n)*1e6, "µs")
	return r, err
}

// cpu returns the CPU seconds that Redis and this process have used. Other programs on the
// machine change CPU time less than elapsed time.
func cpu(ctx context.Context, rdb redis.UniversalClient) (used [2]float64, err error) {
	info, err := rdb.Info(ctx, "cpu").Result()
	if err != nil {
		return used, err
	}
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(infoFields(info)[name], 64)
		if err != nil {
			return used, err
		}
		used[0] += seconds
	}
	used[1], err = ownCPU()
	return used, err
}

// agent returns the usual agent. It has a payload and a deadline, which its children inherit.
func agent(int) queue.Task {
	return queue.Task{Kind: "agent", Payload: payload(), Timeout: time.Hour}
}

// fanOut schedules the usual children of an agent and waits for all of them.
func fanOut(a *agentwait.Agent, fan int) error {
	children := make([]*agentwait.Future[[]byte], fan)
	for i := range children {
		children[i] = agentwait.Schedule[[]byte](a, member, queue.Task{Kind: "member"})
	}
	_, err := agentwait.JoinAll(a, children...)
	return err
}

// member is the payload of every child. It is fixed, because a replay must make the same children.
var member = payload()

func nothing(context.Context, []byte) ([]byte, error) { return nil, nil }

// drainAgents runs a worker until n agents and their children have ended.
func drainAgents(ctx context.Context, q *queue.Queue, n, fan, concurrency int) (time.Duration, error) {
	countdown := newCountdown(n)
	w := worker.New(q, worker.Config{Concurrency: concurrency})
	w.HandleRaw("member", nothing)
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ []byte) ([]byte, error) {
		err := fanOut(a, fan)
		if err == nil {
			countdown.decrement()
		}
		return nil, err
	})
	return workOff(ctx, q, w, n*(fan+1), countdown)
}

// workOff runs a worker until left is zero, and returns how long that took. It fails unless exactly
// n tasks were completed.
func workOff(ctx context.Context, q *queue.Queue, w *worker.Worker, n int, left *countdown) (time.Duration, error) {
	_, before, err := progress(ctx, q)
	if err != nil {
		return 0, err
	}
	took, err := runUntil(ctx, w, left.zero)
	if err != nil {
		return 0, err
	}
	_, after, err := progress(ctx, q)
	return took, enough(after-before, n, err)
}

// runUntil runs a worker until happened is closed, and returns how long that took, with the
// time in which the worker settled its last tasks.
func runUntil(ctx context.Context, w *worker.Worker, happened <-chan struct{}) (time.Duration, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	start := time.Now()
	go func() { done <- w.Run(ctx) }()
	select {
	case <-happened:
	case err := <-done:
		return 0, stoppedEarly(ctx, err)
	}
	stop()
	err := <-done // Run returns when all is settled
	return time.Since(start), err
}

// stoppedEarly returns the error of a measurement whose worker has stopped. err is the result of Run.
func stoppedEarly(ctx context.Context, err error) error {
	return fmt.Errorf("the worker stopped: %w", cmp.Or(err, context.Cause(ctx), errors.New("it was asked to stop")))
}

// progress returns how many tasks of a namespace were enqueued, and how many were completed.
func progress(ctx context.Context, q *queue.Queue) (enqueued, completed int, err error) {
	stats, err := q.Stats(ctx)
	for _, figures := range stats.Queues {
		enqueued += int(figures.Enqueued)
		completed += int(figures.Completed)
	}
	return enqueued, completed, err
}

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

// AgentCost counts the round trips, Redis commands and allocations of an agent's life, from
// Enqueue to COMPLETED, with those of its fan children. One worker of concurrency 50 runs n
// agents and their children. Its heartbeats and its waits for work are counted too.
func AgentCost(ctx context.Context, rdb redis.UniversalClient, n, fan int) (Report, error) {
	r := Report{Bench: "agents"}
	m := &meter{rdb: rdb, report: &r, of: "an agent"}
	rdb.AddHook(m)
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	return r, m.measure(ctx, fmt.Sprintf("agent with %d children", fan), n, func() error {
		if err := accepted(q.EnqueueAll(ctx, tasks(n, agent))); err != nil {
			return err
		}
		_, err := drainAgents(ctx, q, n, fan, 50)
		return err
	})
}

// AgentMemory measures the memory of an agent that waits for fan members, with a limit: the
// growth of used_memory divided by n agents, and MEMORY USAGE of the keys by their purpose.
func AgentMemory(ctx context.Context, rdb redis.UniversalClient, n, fan int) (Report, error) {
	r := Report{Bench: "agents"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	before, err := usedMemory(ctx, rdb)
	if err != nil {
		return r, err
	}
	if err := accepted(q.EnqueueAll(ctx, tasks(n, agent))); err != nil {
		return r, err
	}
	if err := suspendAll(ctx, q, n, fan); err != nil {
		return r, err
	}
	after, err := usedMemory(ctx, rdb)
	if err != nil {
		return r, err
	}
	bytes, err := weigh(ctx, rdb, q.Root(0)+":")
	if err != nil {
		return r, err
	}
	prefix := fmt.Sprintf("waiting agent with %d members: ", fan)
	for _, purpose := range []string{"its record and payload", "its wait", "its list of children", "its members' records and payloads", "entries in sets of the namespace"} {
		r.add(prefix+purpose, float64(bytes[purpose])/float64(n), "B")
	}
	r.add(prefix+"all of used_memory", float64(after-before)/float64(n), "B")
	return r, nil
}

// suspendAll runs agents until all of them wait for members that no worker runs.
func suspendAll(ctx context.Context, q *queue.Queue, n, fan int) error {
	w := worker.New(q, worker.Config{NoReaper: true})
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ []byte) ([]byte, error) {
		children := make([]*agentwait.Future[[]byte], fan)
		for i := range children {
			children[i] = agentwait.Schedule[[]byte](a, member, queue.Task{Kind: "member", Queue: "elsewhere"})
		}
		_, err := agentwait.JoinAll(a.With(agentwait.Wait{Limit: time.Hour}), children...)
		return nil, err
	})
	ready := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		defer close(ready)
		for {
			s, err := q.Stats(ctx)
			if err != nil || s.Queues[0].Waiting == int64(n) {
				failed <- err
				return
			}
			pause(ctx, 10*time.Millisecond)
		}
	}()
	if _, err := runUntil(ctx, w, ready); err != nil {
		return err
	}
	return <-failed
}

// weigh sums up the MEMORY USAGE of a partition's keys by their purpose.
func weigh(ctx context.Context, rdb redis.UniversalClient, root string) (map[string]int64, error) {
	bytes := map[string]int64{}
	for cursor := uint64(0); ; {
		keys, next, err := rdb.Scan(ctx, cursor, root+"*", 500).Result()
		if err != nil {
			return nil, err
		}
		pipe, sizes := rdb.Pipeline(), make([]*redis.IntCmd, len(keys))
		for i, key := range keys {
			sizes[i] = pipe.MemoryUsage(ctx, key, 0) // 0: sample every element
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, err
		}
		for i, key := range keys {
			bytes[purpose(strings.TrimPrefix(key, root))] += sizes[i].Val()
		}
		if cursor = next; cursor == 0 {
			return bytes, nil
		}
	}
}

// purpose returns the figure that a key of a partition counts for.
func purpose(key string) string {
	kind, id, _ := strings.Cut(key, ":")
	switch kind {
	case "spec", "state", "payload", "result":
		if strings.Contains(id, ".") {
			return "its members' records and payloads"
		}
		return "its record and payload"
	case "wait", "pending", "settled", "patience":
		return "its wait"
	case "journal":
		return "its journal"
	case "children":
		return "its list of children"
	}
	return "entries in sets of the namespace"
}
