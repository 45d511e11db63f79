package curfewtest_test

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
)

func TestNowOfAnAgentIsTheStagesClock(t *testing.T) {
	c := curfewtest.New(t)
	runs := 0
	agentwait.Handle(c.Worker, "look", func(a *agentwait.Agent, _ string) (string, error) {
		runs++
		begun, stood := a.Now(), c.Now()
		for time.Since(a.Info().ReceivedAt) < 3*time.Millisecond { // so that the clock of the machine differs
		}
		if again := a.Now(); !again.Equal(begun) || runs == 1 && !begun.Equal(stood) {
			t.Errorf("run %d: Now is %v and then %v, the stage's clock is at %v", runs, begun, again, stood)
		}
		if runs == 1 {
			c.Advance(time.Minute)
		}
		if passed := a.Now().Sub(begun); passed != time.Minute {
			t.Errorf("run %d: Now moved by %v, want 1m", runs, passed)
		}
		return "seen", agentwait.Sleep(a, time.Hour)
	})
	r := c.Enqueue(queue.Task{Kind: "look"})
	c.DrainAll()
	if result := string(c.MustComplete(r.ID)); result != `"seen"` || runs != 2 {
		t.Errorf("the agent returned %s after %d runs, want \"seen\" after 2", result, runs)
	}
}
