package curfewtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Drain runs an agent and its children until the agent only waits for an instant.
func Example_agent() {
	t := &example{} // in a test: its *testing.T
	defer t.end()

	c := curfewtest.New(t)
	worker.Handle(c.Worker, "fetch", func(_ context.Context, url string) (string, error) { return "page of " + url, nil })
	agentwait.Handle(c.Worker, "watch", func(a *agentwait.Agent, url string) (string, error) {
		before, err := agentwait.Run[string](a, url, queue.Task{Kind: "fetch"})
		if err != nil {
			return "", err
		}
		if err := agentwait.Sleep(a, time.Hour); err != nil {
			return "", err
		}
		after, err := agentwait.Run[string](a, url, queue.Task{Kind: "fetch"})
		return before + ", " + after, err
	})

	r := c.Enqueue(queue.Task{Kind: "watch", Payload: []byte(`"a"`)})
	fmt.Println(len(c.Drain()), "runs")
	c.Advance(time.Hour)
	fmt.Println(len(c.Drain()), "runs")
	fmt.Println(string(c.MustComplete(r.ID)))
	// Output:
	// 3 runs
	// 3 runs
	// "page of a, page of a"
}

// DrainAll also moves the clock to the limit of a wait.
func TestDrainAllPassesTheLimitOfAWait(t *testing.T) {
	c := curfewtest.New(t)
	agentwait.Handle(c.Worker, "ask", func(a *agentwait.Agent, _ string) (string, error) {
		_, err := agentwait.Await(a.With(agentwait.Wait{Limit: 24 * time.Hour}), agentwait.Signal[string](a, "answer"))
		var late *agentwait.WaitTimeoutError
		if errors.As(err, &late) {
			return "nobody answered", nil
		}
		return "", err
	})
	r := c.Enqueue(queue.Task{Kind: "ask"})
	begun := c.Now()
	if runs := c.DrainAll(); len(runs) != 2 {
		t.Fatalf("%d runs, want 2", len(runs))
	}
	if result := string(c.MustComplete(r.ID)); result != `"nobody answered"` {
		t.Fatalf("the agent returned %s", result)
	}
	if passed := c.Now().Sub(begun); passed != 24*time.Hour+time.Millisecond {
		t.Fatalf("the clock moved by %v, want 24h0m0.001s", passed)
	}
}

func TestAFailureSaysWhatAnAgentWaitsFor(t *testing.T) {
	said := spied(t, curfewtest.Config{}, func(c *curfewtest.Stage) {
		agentwait.Handle(c.Worker, "ask", func(a *agentwait.Agent, _ string) (string, error) {
			return agentwait.Await(a, agentwait.Signal[string](a, "answer"))
		})
		id := c.Enqueue(queue.Task{Kind: "ask"}).ID
		c.Drain()
		c.AssertStatus(id, queue.Completed)
	})
	if want := "it waits for all of 1 (s-answer), of which 0 have ended"; !strings.Contains(said, want) {
		t.Fatalf("the failure is %q, want one with %q", said, want)
	}
}

// A sweep wakes 100 agents at most, so several sweeps of one instant do nothing else.
func TestAdvanceEndsAllWaitsOfOneInstant(t *testing.T) {
	c := curfewtest.New(t, curfewtest.Config{Client: redistest.Shared(t).Client(t)})
	agentwait.Handle(c.Worker, "ask", func(a *agentwait.Agent, _ string) (string, error) {
		return agentwait.Await(a.With(agentwait.Wait{Limit: time.Minute, KeepPending: true}), agentwait.Signal[string](a, "answer"))
	})
	const agents = 310
	for range agents {
		c.Enqueue(queue.Task{Kind: "ask"})
	}
	c.Drain()
	c.Advance(time.Minute + time.Millisecond)
	woken := 0
	for _, r := range c.Tasks("ask") {
		if r.Status == queue.Pending {
			woken++
		}
	}
	if woken != agents {
		t.Errorf("%d of %d agents are PENDING after the limit of their wait, want all", woken, agents)
	}
}
