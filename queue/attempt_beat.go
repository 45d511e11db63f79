package queue

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// MaxProgress is how many bytes are kept of what an attempt says of its progress.
const MaxProgress = 1 << 10

// Held is an attempt that a worker is at.
type Held struct {
	ID    string
	Epoch int64
	// Progress is how far it is, in words that mean something to whoever reads the
	// record; "" says nothing new, and what was said before stays.
	Progress string
}

// Stop says that an attempt must stop, and why: timeout, cancelled, lost (the task
// was claimed anew), released, gone, or how else it ended; or cancelling: it is to stop,
// and keeps its claim until it did, or the task's grace is over.
type Stop struct {
	ID     string
	Epoch  int64
	Reason string
}

// OfWorker tells whether no attempt is meant, but the worker itself: it is to drain (StopWorker).
func (s Stop) OfWorker() bool { return s.ID == "-" }

// Heartbeat says that a worker lives, for lease from now, and what it holds; the
// answer is what must stop. known is the greatest seq up to which all fetches of the
// worker were answered or given up: claims of theirs that it does not hold were
// never received, and are given back. Lease 0 is goodbye: all is given back. Of an
// attempt that must stop the progress is not written down.
func (a Attempts) Heartbeat(ctx context.Context, partition int, worker string, lease time.Duration, known int64, held []Held) ([]Stop, error) {
	if err := a.q.ready(ctx); err != nil {
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
	stops, left, err := a.beat(ctx, partition, args)
	for lease == 0 && err == nil && left > 0 { // goodbye gives back 500 a call
		before := left
		if _, left, err = a.beat(ctx, partition, args[:3]); left >= before {
			break
		}
	}
	return stops, refusal.Failed("heartbeat", "", err)
}

// beat makes the call. left is how many tasks the worker still holds after a goodbye.
func (a Attempts) beat(ctx context.Context, partition int, args []any) (stops []Stop, left int64, err error) {
	reply, err := a.q.engine.Call(ctx, partition, "heartbeat", args...)
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

// Stops has stop called, from one goroutine, for each attempt of a worker that
// somebody else ended: at once, where the heartbeat would tell it later. A message
// may be lost with its connection; again is called when that may have happened, and
// a heartbeat then tells what was missed. The function returned ends it.
func (a Attempts) Stops(worker string, stop func(Stop), again func()) (end func()) {
	if stop == nil || again == nil {
		panic("queue: Stops needs a function for messages and one for what was missed")
	}
	channels := make([]string, a.q.Partitions())
	for p := range channels {
		channels[p] = a.q.engine.StopChannel(p, worker)
	}
	return a.q.engine.Subscribe(channels, func(_, message string) {
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
