package claim

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Held is an attempt that a worker runs.
type Held struct {
	ID    string
	Epoch int64
	// Progress is a text for people who read the record, such as "page 3 of 9". "" keeps the
	// progress that was reported before.
	Progress string
}

// Stop is an order to stop an attempt. Reason is timeout, cancelled, lost (the task was claimed
// again), released, gone (the task does not exist), or another end of the task in small letters.
// With cancelling the attempt keeps its claim until it has stopped or the task's grace is over.
type Stop struct {
	ID     string
	Epoch  int64
	Reason string
}

// OfWorker reports whether the order is for the worker itself, not for an attempt: the worker must
// drain, because of StopWorker.
func (s Stop) OfWorker() bool { return s.ID == "-" }

// Heartbeat renews a worker's lease, which then ends lease from now, and reports the attempts that
// the worker runs. It returns the attempts that must stop. The progress of an attempt that must stop
// is ignored.
//
// known acknowledges fetches: it is the greatest seq up to which the worker has either received the
// reply or given up on it. A claim of these fetches that is not in held was never received, so its
// task is given back. A lease of 0 means that the worker exits: all its claims are given back.
func (a Attempts) Heartbeat(ctx context.Context, partition int, worker string, lease time.Duration, known int64, held []Held) ([]Stop, error) {
	if err := a.q.Ready(ctx); err != nil {
		return nil, refusal.Failed("heartbeat", "", err)
	}
	if err := names.CheckWorker(worker); err != nil {
		return nil, refusal.Failed("heartbeat", "", err)
	}
	if lease < 0 || lease > 0 && lease < time.Millisecond {
		return nil, refusal.Failed("heartbeat", "", refusal.Invalid("lease", "%v must be at least 1ms, or 0 for goodbye", lease))
	}
	args := make([]any, 0, 3+3*len(held))
	args = append(args, worker, lease.Milliseconds(), known)
	for _, h := range held {
		args = append(args, h.ID, h.Epoch, h.Progress)
	}
	stops, remaining, err := a.beat(ctx, partition, args)
	for lease == 0 && err == nil && remaining > 0 { // a call gives back at most 500 claims
		before := remaining
		// Without progress the loop would not end: a reply is not trusted.
		if _, remaining, err = a.beat(ctx, partition, args[:3]); remaining >= before {
			break
		}
	}
	return stops, refusal.Failed("heartbeat", "", err)
}

// beat makes one call. left is the number of tasks that the worker still holds if the lease is 0.
func (a Attempts) beat(ctx context.Context, partition int, args []any) (stops []Stop, remaining int64, err error) {
	reply, err := a.q.Engine().Call(ctx, partition, "heartbeat", args...)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return nil, 0, err
	}
	for _, answer := range answers[2:] {
		w, err := engine.List(answer, nil, 3)
		if err != nil {
			return nil, 0, err
		}
		stops = append(stops, Stop{ID: engine.Text(w[0]), Epoch: engine.Number(w[1]), Reason: engine.Text(w[2])})
	}
	return stops, engine.Number(answers[1]), nil
}

// Stops subscribes to the messages that order a worker to stop. It calls stop for each attempt of
// the worker that another client or the sweep has ended, because the next heartbeat would report it
// later. A message can be lost with its connection. When that may have happened, Stops calls again,
// and the worker should send a heartbeat, which returns the orders that were missed. All calls come
// from one goroutine. The returned function ends the subscription.
func (a Attempts) Stops(worker string, stop func(Stop), again func()) (end func()) {
	channels := make([]string, a.q.Partitions())
	for p := range channels {
		channels[p] = a.q.Engine().StopChannel(p, worker)
	}
	return a.q.Engine().Subscribe(channels, func(_, message string) {
		if message == "" {
			again()
			return
		}
		if words := strings.SplitN(message, " ", 3); len(words) == 3 {
			epoch, _ := strconv.ParseInt(words[1], 10, 64)
			stop(Stop{ID: words[0], Epoch: epoch, Reason: words[2]})
		}
	}).Stop
}
