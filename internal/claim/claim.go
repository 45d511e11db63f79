// Package claim has the calls that only workers and agents make: to claim tasks, to keep and settle claims, and to suspend an agent.
// Packages worker and agentwait and the HTTP API use it.
//
// A worker claims tasks (Fetch), renews its lease (Heartbeat), is notified of attempts that must
// stop (Stops), and reports how attempts ended (Settle). Each report carries the epoch of its claim,
// so that a report about a lost claim is refused. An agent adds to its journal (Remember), waits
// (Suspend), and reads its journal when it runs again (Recall). lua/calls.md describes the reply of
// each call.
package claim

import (
	"context"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Attempts makes the calls for one queue.
type Attempts struct{ q *queue.Queue }

// Of returns the calls for a queue.
func Of(q *queue.Queue) Attempts { return Attempts{q} }

// Answers makes an empty call to a partition, and returns nil if it replies. With it a worker
// distinguishes a partition that hangs from a call whose reply is large and takes long.
func (a Attempts) Answers(ctx context.Context, partition int) error {
	if err := a.q.Ready(ctx); err != nil {
		return refusal.Failed("answers", "", err)
	}
	_, err := a.q.Engine().Call(ctx, partition, "read")
	return refusal.Failed("answers", "", err)
}

// WakeLine returns the wake line of these queues of a partition. Close it when the worker ends.
func (a Attempts) WakeLine(partition int, queues []string) *engine.WakeLine {
	return a.q.Engine().WakeLine(partition, queues)
}

// Describe stores the state of a worker and a description of it in a partition. about is a JSON
// object of up to 4,096 bytes; if it is empty, the stored description is kept. Held tasks that the
// worker can run by this description go back in line. If the worker has no lease in the partition,
// Describe returns [refusal.ErrNotFound].
func (a Attempts) Describe(ctx context.Context, partition int, worker string, state queue.WorkerState, about string) error {
	if err := a.q.Ready(ctx); err != nil {
		return refusal.Failed("describe worker", worker, err)
	}
	if err := names.CheckWorker(worker); err != nil {
		return refusal.Failed("describe worker", "", err)
	}
	words, err := engine.Words(a.q.Engine().Call(ctx, partition, "describe_worker", worker, string(state), about))
	if err == nil && engine.Text(words[0]) == "MISSING" {
		err = engine.ErrNoWorker
	}
	if err != nil {
		return refusal.Failed("describe worker", worker, err)
	}
	return nil
}
