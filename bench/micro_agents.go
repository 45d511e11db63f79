package bench

import (
	"context"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// members is how many children each agent has in Micro.
const members = 10

// agentCalls measures how agents are suspended and woken.
func (m *micro) agentCalls(ctx context.Context) error {
	n := max(m.tasks/50, 2)
	list := tasks(n, agent)
	for i := range list {
		list[i].Queue = "agents"
	}
	if err := accepted(m.q.EnqueueAll(ctx, list)); err != nil {
		return err
	}
	agents, err := m.fetchAll(ctx, "agents", n)
	if err != nil {
		return err
	}
	err = m.measure(ctx, callName{"suspend", members, "agent"}, n, func() error {
		for _, a := range agents {
			if _, err := m.q.Attempts().Suspend(ctx, suspension(a)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	children, err := m.fetchAll(ctx, "default", n*members)
	if err != nil {
		return err
	}
	families := byOwner(children)
	err = m.measure(ctx, callName{"settle and wake", members, "agent"}, n, func() error {
		for _, a := range agents {
			if err := m.settle(ctx, families[a.ID]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = m.fetchAll(ctx, "agents", n) // fails unless all were woken
	return err
}

// byOwner groups children by their agent.
func byOwner(children []queue.Claim) map[string][]queue.Claim {
	families := map[string][]queue.Claim{}
	for _, c := range children {
		owner, _, _ := strings.Cut(c.ID, ".")
		families[owner] = append(families[owner], c)
	}
	return families
}

// fetchAll claims n tasks of a queue.
func (m *micro) fetchAll(ctx context.Context, line string, n int) ([]queue.Claim, error) {
	var all []queue.Claim
	for len(all) < n {
		claims, err := m.fetch(ctx, line, min(n-len(all), 500))
		if err == nil && len(claims) == 0 {
			err = enough(len(all), n, nil)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, claims...)
	}
	return all, nil
}

// suspension returns a suspension in which an agent creates its children and waits for all of them.
func suspension(a queue.Claim) queue.Suspension {
	s := queue.Suspension{Agent: a.ID, Epoch: a.Epoch, Worker: who,
		Wait: queue.Wait{Entry: 1, Digest: "wait", Label: "all of its children"}}
	for i := range members {
		id := a.ID + "." + strconv.Itoa(i+1)
		s.Children = append(s.Children, queue.Task{ID: id, Kind: "member", Payload: member})
		s.Wait.Members = append(s.Wait.Members, queue.Member{ID: id})
	}
	return s
}
