package reaper

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Namespace is what queue.Open opens.
type Namespace interface {
	Engine() *engine.Engine // of this module
}

// Swept is what one sweep did.
type Swept struct {
	Wait time.Duration // until something is due; 0: there is more, again at once
	Turn bool          // this reaper has the turn, and is to be precise

	TimedOut, Started, Fired, Warned, GivenBack, WaitsTimedOut, Drained, Removed, Broken int
	// Errors are clocks that could not be read and records that could not be worked
	// with. The rest of the sweep went on.
	Errors []string
}

// Sweep ends, starts and removes what is due in a partition, up to batch of a kind, and no more than 250.
func Sweep(ctx context.Context, n Namespace, partition int, reaper string, batch int, fallback time.Duration) (Swept, error) {
	if engine.IsNil(n) {
		return Swept{}, refusal.Failed("sweep", "", refusal.Invalid("namespace", "is nil: use what queue.Open returned"))
	}
	if err := engine.Given(ctx); err != nil {
		return Swept{}, refusal.Failed("sweep", "", err)
	}
	e := n.Engine()
	reply, err := e.Call(ctx, partition, "sweep", reaper, batch, fallback.Milliseconds())
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
	return s, nil
}

// Alarms has ring called, from one goroutine, when something fell due sooner than
// the reaper with the turn would look, and after a broken connection, when an alarm
// may have been missed. The function returned ends it.
func Alarms(n Namespace, partition int, ring func()) (end func()) {
	if engine.IsNil(n) || ring == nil {
		panic("reaper: Alarms needs a namespace, as queue.Open returns it, and a function to call")
	}
	e := n.Engine()
	return e.Subscribe([]string{e.AlarmChannel(partition)}, func(_, _ string) { ring() }).Stop
}
