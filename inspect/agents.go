package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Agent is a live task that waits for other tasks, or has children.
type Agent struct {
	ID          string
	Kind, Queue string
	Status      queue.Status
	WaitEnds    time.Time // the next limit of its wait; zero: it does not wait, or its wait has no limit
	Found       int       // number of live children that Agents saw
}

// AgentList is the result of Agents.
type AgentList struct {
	Agents  []Agent // sorted by id
	Looked  int     // number of entries of clocks that were read
	Cut     bool    // whether a clock has more entries than were read
	Waiting int64   // number of agents that wait, listed or not
}

// Agents lists live agents. They have no index of their own, so it reads the clocks, up to n entries
// of each in each partition. It finds an agent if its wait has a limit, or if a live child has a
// deadline, another limit or a delay. It does not find an agent that waits without a limit for tasks
// without any, but Waiting counts it too.
func Agents(ctx context.Context, q *queue.Queue, n int) (AgentList, error) {
	if err := q.Ready(ctx); err != nil {
		return AgentList{}, refusal.Failed("agents", "", err)
	}
	if n < 1 || n > 100_000 {
		return AgentList{}, refusal.Failed("agents", "", refusal.Invalid("n", "%d must be 1 to 100000", n))
	}
	agents := map[string]*Agent{}
	var list AgentList
	for p := range q.Partitions() {
		if err := list.look(ctx, q, p, n, agents); err != nil {
			return AgentList{}, refusal.Failed("agents", "", err)
		}
	}
	heads, err := readHeads(ctx, q, slices.Collect(maps.Keys(agents)))
	if err != nil {
		return AgentList{}, refusal.Failed("agents", "", err)
	}
	for id, a := range agents {
		h := heads[id]
		if h.kind == "" || h.status.Ended() {
			continue // its children have not ended yet
		}
		a.Kind, a.Queue, a.Status = h.kind, h.queue, h.status
		if a.Status != queue.Waiting {
			a.WaitEnds = time.Time{}
		}
		list.Agents = append(list.Agents, *a)
	}
	slices.SortFunc(list.Agents, func(a, b Agent) int { return cmp.Compare(a.ID, b.ID) })
	stats, err := q.Stats(ctx)
	if err != nil {
		return AgentList{}, err
	}
	for _, s := range stats.Queues {
		list.Waiting += s.Waiting
	}
	return list, nil
}

// look reads the clocks of a partition.
func (l *AgentList) look(ctx context.Context, q *queue.Queue, p, n int, agents map[string]*Agent) error {
	if err := q.Engine().CheckVersion(ctx, p); err != nil {
		return err
	}
	clocks := []string{"waits", "deadlines", "limits", "delayed"}
	replies := make([]*redis.ZSliceCmd, len(clocks))
	if _, err := q.Engine().Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, clock := range clocks {
			replies[i] = pipe.ZRangeWithScores(ctx, q.Root(p)+":"+clock, 0, int64(n))
		}
		return nil
	}); err != nil {
		return q.Engine().Unread(ctx, p, err)
	}
	agent := func(id string) *Agent {
		if agents[id] == nil {
			agents[id] = &Agent{ID: id}
		}
		return agents[id]
	}
	children := map[string]bool{}
	for i, clock := range clocks {
		rows := replies[i].Val()
		if len(rows) > n {
			rows, l.Cut = rows[:n], true
		}
		l.Looked += len(rows)
		for _, row := range rows {
			id, _ := row.Member.(string)
			if owner := names.OwnerOf(id); owner != "" && !children[id] {
				children[id] = true
				agent(owner).Found++
			}
			if clock == "waits" {
				agent(id).WaitEnds = time.UnixMilli(int64(row.Score))
			}
		}
	}
	return nil
}
