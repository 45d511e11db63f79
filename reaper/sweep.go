package reaper

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Namespace is a namespace that queue.Open has opened: a *queue.Queue.
type Namespace interface {
	Engine() *engine.Engine // of this module
}

// Swept is the result of one sweep.
type Swept struct {
	Wait time.Duration // until the next sweep of this reaper; 0: more is due, sweep again at once
	Turn bool          // this reaper has the turn: Wait ends when something is due

	// TimedOut, Started, Fired, Warned, GivenBack, WaitsTimedOut, Drained, Removed and Broken
	// count what the sweep did.
	TimedOut, Started, Fired, Warned, GivenBack, WaitsTimedOut, Drained, Removed, Broken int
	// Errors names the clocks that could not be read, and the records that could not be
	// processed. The sweep did everything else.
	Errors []string
}

// maxBatch is how many entries of a clock a sweep handles at most (lua/call/sweep.lua).
const maxBatch = 250

// Sweep makes one sweep of a partition: it ends, starts and removes what is due, at most batch
// entries of each clock and never more than 250. fallback is the longest Wait for the reaper that has
// the turn. Sweep returns an error if the call fails: reaper must be one word that begins with a letter
// or digit, batch at least 1, and fallback at least 1 ms.
func Sweep(ctx context.Context, n Namespace, partition int, reaper string, batch int, fallback time.Duration) (Swept, error) {
	if engine.IsNil(n) {
		return Swept{}, refusal.Failed("sweep", "", refusal.Invalid("namespace", "is nil: use what queue.Open returned"))
	}
	if err := engine.Given(ctx); err != nil {
		return Swept{}, refusal.Failed("sweep", "", err)
	}
	e := n.Engine()
	reply, err := e.Call(ctx, partition, "sweep", reaper, min(batch, maxBatch), fallback.Milliseconds())
	answers, err := engine.List(reply, err, 5)
	if err != nil {
		return Swept{}, refusal.Failed("sweep", "", err)
	}
	s := Swept{Wait: time.Duration(engine.Number(answers[1])) * time.Millisecond, Turn: engine.Number(answers[2]) == 1}
	did, err := engine.Elements(answers[3], nil)
	if err != nil {
		return Swept{}, refusal.Failed("sweep", "", err)
	}
	counts := map[string]*int{"timed_out": &s.TimedOut, "started": &s.Started, "fired": &s.Fired, "warned": &s.Warned, "given_back": &s.GivenBack,
		"waits_timed_out": &s.WaitsTimedOut, "drained": &s.Drained, "removed": &s.Removed, "broken": &s.Broken}
	for i := 0; i+1 < len(did); i += 2 {
		if count := counts[engine.Text(did[i])]; count != nil {
			*count = int(engine.Number(did[i+1]))
		}
	}
	s.Errors = e.Located("sweep", answers[5:])
	e.Swept(s.Wait == 0)
	return s, nil
}

// Alarms calls ring, from one goroutine, when something is due earlier than the next sweep of the
// reaper that has the turn. It also calls ring when it has subscribed, and when it has subscribed
// again after a broken connection: an alarm may have been lost before. Call end to unsubscribe.
// Alarms panics if the namespace or ring is nil.
func Alarms(n Namespace, partition int, ring func()) (end func()) {
	if engine.IsNil(n) || ring == nil {
		panic("reaper: Alarms needs a namespace, as queue.Open returns it, and a function to call")
	}
	e := n.Engine()
	return e.Subscribe([]string{e.AlarmChannel(partition)}, func(_, _ string) { ring() }).Stop
}
