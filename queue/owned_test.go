package queue_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// If one task of a long list is another agent's, in another partition or after the first 500, no task is changed.
func TestAListWithATaskOfAnotherAgentIsRefusedWhole(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: "owned", Partitions: 4})
		worker := &queuetest.Taker{Q: q, Worker: "w"}
		agent := queuetest.Enqueue(t, q, queue.Task{Queue: "agents"}).ID
		held := worker.Take(t, agent, "agents")
		children := make([]queue.Task, 501)
		mine := make([]string, len(children))
		for i := range children {
			mine[i] = fmt.Sprint(agent, ".", i+1)
			children[i] = queue.Task{Kind: "k", ID: mine[i]}
		}
		if _, err := q.EnqueueAll(t.Context(), children); err != nil {
			t.Fatal(err)
		}
		stranger := queuetest.Enqueue(t, q, queue.Task{Queue: "strangers"}).ID
		for queuetest.Partition(t, stranger) == queuetest.Partition(t, agent) {
			stranger = queuetest.Enqueue(t, q, queue.Task{Queue: "strangers"}).ID
		}
		theirs := queuetest.Enqueue(t, q, queue.Task{ID: stranger + ".1"}).ID

		suspend := func(ids []string) error {
			s := claim.Suspension{Agent: agent, Epoch: held.Epoch, Worker: "w", Children: []queue.Task{{Kind: "k", ID: agent + ".new"}}}
			s.Wait = claim.Wait{Entry: 1, Digest: "d", Limit: 1e9}
			for _, id := range ids {
				s.Wait.Members = append(s.Wait.Members, claim.Member{ID: id})
			}
			_, err := claim.Of(q).Suspend(t.Context(), s)
			return err
		}
		cancel := func(ids []string) error {
			_, err := q.CancelAs(t.Context(), "call", agent, ids, "")
			return err
		}
		before := redistest.Digest(t, rdb, "owned")
		for name, err := range map[string]error{
			"CancelAs, in two partitions": cancel([]string{mine[0], theirs}),
			"CancelAs, after 500":         cancel(append(mine, theirs)),
			"CancelAs, no own task":       cancel([]string{theirs}),
			"Suspend, after 500":          suspend(append(mine, theirs)),
		} {
			if !errors.Is(err, refusal.ErrNotOwner) {
				t.Errorf("%s: %v, want %v", name, err, refusal.ErrNotOwner)
			}
		}
		if redistest.Digest(t, rdb, "owned") != before {
			t.Error("a refused call changed something")
		}
		if err := cancel(mine); err != nil {
			t.Errorf("CancelAs of the agent's own children: %v", err)
		}
	})
}
