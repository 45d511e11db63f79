package curfewtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// order is a definition: it is charged, somebody approves it within a day, and then it is shipped. Without an answer it is
// shipped too.
const order = `
id: order
timeout: 7d
spec:
  entrypoint: main
  inputs: {parameters: [{name: item}]}
  templates:
  - name: main
    dag:
      tasks:
      - name: charge
        executor: {type: charge}
        retry: {limit: 2}
      - name: approve
        executor: {type: wait}
        dependencies: [charge]
        timeout: 1d
        continueOn: {timeout: true}
      - name: ship
        executor: {type: ship}
        dependencies: [approve]
        inputs:
          parameters:
          - {name: item, value: "{{ inputs.parameters.item }}"}
          - {name: approval, value: "{{ tasks.approve.phase }}"}
`

// shipment is the payload of a task of the kind ship.
type shipment struct {
	Item     string `json:"item"`
	Approval string `json:"approval"`
}

func paid(context.Context, []byte) (string, error) { return "paid", nil }

// putOrder stores the definition, and registers a handler for each of its kinds.
func putOrder(t testing.TB, c *curfewtest.Stage, charge func(context.Context, []byte) (string, error)) {
	t.Helper()
	flow.Register(c.Worker)
	worker.Handle(c.Worker, "charge", charge)
	worker.Handle(c.Worker, "ship", func(_ context.Context, s shipment) (string, error) {
		return s.Item + " is on its way, approval: " + s.Approval, nil
	})
	if _, err := flow.Put(t.Context(), c.Queue, []byte(order)); err != nil {
		t.Fatal(err)
	}
}

// A definition runs to its end with handlers of the test. Nobody approves, so the clock moves to the deadline of that node.
func Example_flow() {
	t := &example{} // in a test: its *testing.T
	defer t.end()

	c := curfewtest.New(t)
	putOrder(t, c, paid)
	r, err := flow.Start(t.Context(), c.Queue, "order", map[string]any{"item": "a book"}, "", queue.Task{})
	if err != nil {
		t.Fatal(err)
	}
	c.Drain() // charge has run, and approve waits
	fmt.Println(c.Get(r.ID).Status)
	c.Advance(24*time.Hour + time.Millisecond)
	c.Drain()
	fmt.Println(c.Get(r.ID).Status)
	fmt.Println(string(c.MustComplete(r.ID + ".ship")))
	// Output:
	// WAITING
	// COMPLETED
	// "a book is on its way, approval: Timeout"
}

// A node that waits is resumed, and a failed attempt is retried.
func TestOrder(t *testing.T) {
	c := curfewtest.New(t)
	attempts := 0
	putOrder(t, c, func(ctx context.Context, in []byte) (string, error) {
		if attempts++; attempts == 1 {
			return "", errors.New("503")
		}
		return paid(ctx, in)
	})

	r, err := flow.Start(t.Context(), c.Queue, "order", map[string]any{"item": "a book"}, "", queue.Task{})
	if err != nil {
		t.Fatal(err)
	}
	c.Drain() // charge fails and succeeds, and approve waits
	c.AssertStatus(r.ID, queue.Waiting)
	if err := flow.Resume(t.Context(), c.Queue, r.ID, "approve", true); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	c.MustComplete(r.ID)
	if got := string(c.MustComplete(r.ID + ".ship")); got != `"a book is on its way, approval: Succeeded"` {
		t.Errorf("ship returned %s", got)
	}
	if attempts != 2 {
		t.Errorf("charge ran %d times, want 2", attempts)
	}
}

// The time of the run is over while a node waits: the run has timed out at its deadline, and its node is cancelled.
func TestARunThatIsOutOfTime(t *testing.T) {
	c := curfewtest.New(t)
	putOrder(t, c, paid)
	r, err := flow.Start(t.Context(), c.Queue, "order", map[string]any{"item": "a book"}, "", queue.Task{Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c.Drain()
	c.Advance(time.Hour - time.Millisecond)
	c.AssertStatus(r.ID, queue.Waiting)
	c.Advance(2 * time.Millisecond)
	c.AssertTimedOut(r.ID)
	if got := c.Get(r.ID + ".approve"); !got.Status.Ended() {
		t.Errorf("the node approve is %s, want an end", got.Status)
	}
	if len(c.Tasks("ship")) > 0 {
		t.Error("a run that is out of time has shipped")
	}
}
