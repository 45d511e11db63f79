package curfewtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// The code of docs/how-to/testing.md. A test of the pages finds it here.

func TestRender(t *testing.T) {
	c := curfewtest.New(t)
	worker.Handle(c.Worker, "render", render)

	r := c.Enqueue(queue.Task{Kind: "render", Payload: []byte(`{"Page":"index"}`), MaxRetries: 3})
	c.RunOne() // the handler returned worker.RetryAfter(30*time.Second, err)
	c.AssertStatus(r.ID, queue.Pending)
	c.Advance(30 * time.Second)
	c.RunOne() // its second attempt
	if got := string(c.MustComplete(r.ID)); got != `"index.png"` {
		t.Errorf("render returned %s", got)
	}
	c.AssertNothingLeft()
}

func TestPublish(t *testing.T) {
	c := curfewtest.New(t)
	agentwait.Handle(c.Worker, "publish", func(a *agentwait.Agent, _ string) (bool, error) {
		return agentwait.Await(a, agentwait.Signal[bool](a, "approval"))
	})

	r := c.Enqueue(queue.Task{Kind: "publish"})
	c.Drain()
	c.AssertStatus(r.ID, queue.Waiting)
	if _, err := c.Queue.Signal(t.Context(), r.ID, "approval", []byte("true")); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	c.MustComplete(r.ID)
}

func TestSlow(t *testing.T) {
	c := curfewtest.New(t)
	worker.Handle(c.Worker, "slow", func(ctx context.Context, in []byte) (string, error) {
		c.Advance(time.Minute)
		return "too late", context.Cause(ctx) // worker.ErrAttemptTimeout
	})

	r := c.Enqueue(queue.Task{Kind: "slow", AttemptTimeout: 10 * time.Second})
	c.RunOne()
	c.AssertTimedOut(r.ID)
}

func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := curfewtest.New(t)
		worker.Handle(c.Worker, "hang", func(ctx context.Context, in []byte) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx) // worker.ErrAttemptTimeout
		})

		r := c.Enqueue(queue.Task{Kind: "hang", AttemptTimeout: 20 * time.Minute})
		c.RunOne()
		c.AssertTimedOut(r.ID)
	})
}

// The code of docs/how-to/approve.md.
func TestAPromiseWithAQuestion(t *testing.T) {
	type refund struct {
		Order  string `json:"order"`
		Amount int    `json:"amount"`
	}
	c := curfewtest.New(t)
	agentwait.Handle(c.Worker, "refund", func(a *agentwait.Agent, in refund) (bool, error) {
		approval := agentwait.Schedule[bool](a, in, queue.Task{
			ID: "approval", Kind: "refund-approval", Promise: true, ResultType: "bool", Timeout: 24 * time.Hour,
		})
		return agentwait.Await(a, approval)
	})

	r := c.Enqueue(queue.Task{Kind: "refund", Payload: []byte(`{"order":"17","amount":40}`)})
	c.Drain()
	question := c.Tasks("refund-approval")[0]
	if string(question.Payload) != `{"order":"17","amount":40}` || question.ID != r.ID+".approval" {
		t.Errorf("the promise is %s with the payload %s", question.ID, question.Payload)
	}
	if _, err := c.Queue.Resolve(t.Context(), question.ID, []byte(`"yes"`)); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("an answer of another type: %v", err)
	}
	if _, err := c.Queue.Resolve(t.Context(), question.ID, []byte("true")); err != nil {
		t.Fatal(err)
	}
	c.Drain()
	if got := string(c.MustComplete(r.ID)); got != "true" {
		t.Errorf("the agent returned %s", got)
	}
}

func TestPublishReplays(t *testing.T) {
	publish := func(a *agentwait.Agent, _ string) (bool, error) {
		return agentwait.Await(a, agentwait.Signal[bool](a, "approval"))
	}

	c := curfewtest.New(t)
	agentwait.Handle(c.Worker, "publish", publish)
	c.AssertReplays("testdata/agents.jsonl")
}
