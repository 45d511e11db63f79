package versions

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const (
	namespace = "fixture"
	root      = namespace + ":{0}"
)

// all are the queues of the fixture.
var all = []string{"default", "later", "mail", "few", "slow", "paused"}

// handlers registers the handlers of the fixture. The journals of its agents were written by these handlers, so what
// an agent does must never change.
func handlers(w *worker.Worker) {
	for _, kind := range []string{"echo", "mail", "hook"} {
		w.HandleRaw(kind, func(_ context.Context, in []byte) ([]byte, error) { return in, nil })
	}
	agentwait.Handle(w, "gather", gather)
	agentwait.Handle(w, "nap", func(a *agentwait.Agent, _ string) (string, error) { return "rested", agentwait.Sleep(a, time.Hour) })
	agentwait.Handle(w, "inbox", inbox)
	agentwait.Handle(w, "approval", approval)
}

// gather waits for three children, of which two are done when the fixture is written.
func gather(a *agentwait.Agent, _ string) (string, error) {
	note, err := agentwait.Step(a, "note", func(context.Context) (string, error) { return "n", nil })
	if err != nil {
		return "", err
	}
	x := agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo"})
	y := agentwait.Schedule[string](a, "y", queue.Task{Kind: "echo"})
	z := agentwait.Schedule[string](a, "z", queue.Task{Kind: "echo", Queue: "later"})
	texts, err := agentwait.JoinAll(a, x, y, z)
	if err != nil {
		return "", err
	}
	for _, text := range texts {
		note += text
	}
	return note, nil
}

// inbox waits for two signals, of which one has arrived.
func inbox(a *agentwait.Agent, _ string) (string, error) {
	first := agentwait.Signal[string](a, "message")
	one, err := agentwait.Await(a, first)
	if err != nil {
		return "", err
	}
	two, err := agentwait.Await(a, agentwait.NextSignal(a, first))
	return one + two, err
}

// approval waits for a promise, for no longer than two hours.
func approval(a *agentwait.Agent, _ string) (string, error) {
	return agentwait.Await(a.With(agentwait.Wait{Limit: 2 * time.Hour}), agentwait.Promise[string](a, "approved", 0))
}
