package agentwait_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
)

// Cancel creates the children that were scheduled before it. A replay does not create them again.
func TestARetryAfterACancelMissesNoChild(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	runs := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		runs++
		slow := agentwait.Promise[string](a, "slow", 0)
		echo(a, "not awaited")
		if _, err := agentwait.Cancel(a, "not needed", slow); err != nil {
			return "", err
		}
		if _, err := agentwait.Step(a, "publish", func(context.Context) (int, error) { return 1, nil }); err != nil || runs == 1 {
			return "", errors.Join(err, errBoom)
		}
		return agentwait.Await(a, echo(a, "done"))
	})
	r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "agent", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
	if err != nil {
		t.Fatal(err)
	}
	s.drain()
	s.completed(r.ID, `"done"`)
	s.is(r.ID+".1", queue.Completed)
}

func TestCancelAllTakesTasksOfSeveralTypes(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	var results []string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		done, number := echo(a, "x"), agentwait.Promise[int](a, "number", 0)
		if _, err := agentwait.Await(a, done); err != nil {
			return "", err
		}
		none, err := agentwait.CancelAll(a, "")
		if err != nil || none != nil {
			return "", fmt.Errorf("CancelAll without tasks = %v, %v", none, err)
		}
		r, err := agentwait.CancelAll(a, "enough", done, number, agentwait.Signal[bool](a, "go"))
		if err != nil {
			return "", err
		}
		results = append(results, fmt.Sprint(r[0].AlreadyCompleted, string(r[0].Value), r[1].Cancelled, r[2].Cancelled))
		return "", agentwait.Sleep(a, time.Second)
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.advance(time.Second)
	s.drain()
	s.is(id, queue.Completed)
	if want := `true"x"true true`; len(results) != 2 || results[0] != want || results[1] != want {
		t.Fatalf("CancelAll returned %q, want twice %q", results, want)
	}
}

// A grandchild and the hook of a child are not children of the agent.
func TestAGrandchildIsNotAChild(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "sub", func(a *agent, _ string) (string, error) {
		return agentwait.Await(a, agentwait.Promise[string](a, "inner", 0))
	})
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		sub := agentwait.Schedule[string](a, "", queue.Task{Kind: "sub", ID: "sub"})
		if _, err := agentwait.Await(a.With(agentwait.Wait{Limit: time.Second, KeepPending: true}), sub); errors.Is(err, agentwait.ErrSuspended) {
			return "", err
		}
		for _, name := range []string{"sub.inner", "sub!done"} {
			f := agentwait.Child[string](a, name)
			if _, err := agentwait.Cancel(a, "", f); !errors.Is(err, agentwait.ErrNotOwner) {
				t.Errorf("Cancel of %s: %v", name, err)
			}
			if _, err := agentwait.Peek(a, f); !errors.Is(err, agentwait.ErrNotOwner) {
				t.Errorf("Peek at %s: %v", name, err)
			}
		}
		return agentwait.Await(a, sub)
	})
	id := s.enqueue("agent", "")
	s.run(2)
	s.advance(1001 * time.Millisecond)
	s.drain()
	s.is(id+".sub.inner", queue.Pending)
}
