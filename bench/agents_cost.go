package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

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
	of := fmt.Sprintf("waiting agent with %d members: ", fan)
	for _, part := range []string{"its record and payload", "its wait", "its list of children", "its members' records and payloads", "entries in sets of the namespace"} {
		r.add(of+part, float64(bytes[part])/float64(n), "B")
	}
	r.add(of+"all of used_memory", float64(after-before)/float64(n), "B")
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
	all := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		defer close(all)
		for {
			s, err := q.Stats(ctx)
			if err != nil || s.Queues[0].Waiting == int64(n) {
				failed <- err
				return
			}
			pause(ctx, 10*time.Millisecond)
		}
	}()
	if _, err := runUntil(ctx, w, all); err != nil {
		return err
	}
	return <-failed
}

// weigh returns the MEMORY USAGE of the keys of a partition, summed up by their purpose.
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
