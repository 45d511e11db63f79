package reaper

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Namespace is an opened namespace: a *queue.Queue.
type Namespace interface {
	Engine() *engine.Engine
}

// Swept is the result of one sweep.
type Swept struct {
	Wait time.Duration // time until the next sweep of this reaper; 0: more tasks are due, sweep again at once
	Turn bool          // whether this reaper has the turn; then Wait ends when something is due

	// TimedOut, Started, Fired, Warned, GivenBack, WaitsTimedOut, Drained, Removed and Broken count
	// the effects of the sweep.
	TimedOut, Started, Fired, Warned, GivenBack, WaitsTimedOut, Drained, Removed, Broken int
	// Errors names the clocks that could not be read, and the records that could not be
	// processed. The sweep did everything else.
	Errors []string
}

// maxBatch is the greatest number of entries of a clock that a sweep handles (lua/call/sweep.lua).
const maxBatch = 250

// Sweep sweeps a partition once. It ends, starts and removes due tasks, at most batch entries of
// each clock and never more than 250. fallback is the longest Wait for the reaper that has the turn.
// Sweep returns an error if the call fails. reaper must be one word that begins with a letter or
// digit, batch at least 1, and fallback at least 1 ms.
func Sweep(ctx context.Context, n Namespace, partition int, reaper string, batch int, fallback time.Duration) (Swept, error) {
	if engine.IsNil(n) {
		return Swept{}, refusal.Failed("sweep", "", refusal.Invalid("namespace", "is nil: use what queue.Open returned"))
	}
	if err := engine.Given(ctx); err != nil {
		return Swept{}, refusal.Failed("sweep", "", err)
	}
	e := n.Engine()
	reply, err := e.Call(ctx, partition, "sweep", reaper, min(batch, maxBatch), fallback.Milliseconds())
	answers, err := engine.List(reply, err, 4)
	if err != nil {
		return Swept{}, refusal.Failed("sweep", "", err)
	}
	s := Swept{Wait: time.Duration(engine.Number(answers[1])) * time.Millisecond, Turn: engine.Number(answers[2]) == 1}
	counted, err := engine.Elements(answers[3], nil)
	if err != nil {
		return Swept{}, refusal.Failed("sweep", "", err)
	}
	counts := map[string]*int{"timed_out": &s.TimedOut, "started": &s.Started, "fired": &s.Fired, "warned": &s.Warned, "given_back": &s.GivenBack,
		"waits_timed_out": &s.WaitsTimedOut, "drained": &s.Drained, "removed": &s.Removed, "broken": &s.Broken}
	for i := 0; i+1 < len(counted); i += 2 {
		if count := counts[engine.Text(counted[i])]; count != nil {
			*count = int(engine.Number(counted[i+1]))
		}
	}
	s.Errors = e.Located("sweep", answers[4:])
	e.Swept(s.Wait == 0)
	return s, nil
}

// Alarms calls ring when something is due earlier than the next sweep of the reaper that has the
// turn. It also calls ring whenever it has subscribed, at first and after a broken connection,
// because an alarm may have been lost before. All calls come from one goroutine. Call end to
// unsubscribe. Alarms panics if the namespace or ring is nil.
func Alarms(n Namespace, partition int, ring func()) (end func()) {
	if engine.IsNil(n) || ring == nil {
		panic("reaper: Alarms needs a namespace, as queue.Open returns it, and a function to call")
	}
	e := n.Engine()
	return e.Subscribe([]string{e.AlarmChannel(partition)}, func(_, _ string) { ring() }).Stop
}
