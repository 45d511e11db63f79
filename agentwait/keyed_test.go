package agentwait_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The idempotency key of a child is its name. Two calls of Schedule with one key schedule one child, in a
// replay too.
func TestAnIdempotencyKeyOfAChildIsItsName(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		page := func(what string) *agentwait.Future[string] {
			return agentwait.Schedule[string](a, what, queue.Task{Kind: "echo", IdempotencyKey: "page"})
		}
		first, second := page("first"), page("second")
		if first.ID() != a.ID()+".page" || second.ID() != first.ID() {
			t.Errorf("the children are %s and %s, want both to be %s.page", first.ID(), second.ID(), a.ID())
		}
		all, err := agentwait.JoinAll(a, first, second, echo(a, "other"))
		return strings.Join(all, " "), err
	})
	id := s.enqueue("agent", "")
	if ran := s.drain(); ran != 4 { // two runs of the agent, and two children
		t.Errorf("%d tasks ran, want 4", ran)
	}
	s.completed(id, `"first first other"`)
}

func TestAnInvalidIdempotencyKeyOfAChildIsRefused(t *testing.T) {
	for claim, c := range map[string]struct {
		task queue.Task
		want error
		says string
	}{
		"the child has another name":      {queue.Task{Kind: "echo", ID: "one", IdempotencyKey: "two"}, refusal.ErrInvalid, `is its name: set IdempotencyKey "two" or ID "one", not both`},
		"the key begins with s-":          {queue.Task{Kind: "echo", IdempotencyKey: "s-two"}, refusal.ErrInvalid, "begins with s-"},
		"a child of another kind has it":  {queue.Task{Kind: "fail", IdempotencyKey: "page"}, refusal.ErrConflict, "belongs to a child of kind echo"},
		"the key cannot be part of an id": {queue.Task{Kind: "echo", IdempotencyKey: "a b"}, refusal.ErrInvalid, ""},
		"the key is a number":             {queue.Task{Kind: "echo", IdempotencyKey: "7"}, refusal.ErrInvalid, "is a number"},
	} {
		t.Run(strings.ReplaceAll(claim, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				good := agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", IdempotencyKey: "page"})
				_, err := agentwait.Await(a, agentwait.Schedule[string](a, "x", c.task))
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want %v with the text %q", err, c.want, c.says)
				}
				return agentwait.Await(a, good)
			})
			id := s.enqueue("agent", "")
			s.drain()
			s.completed(id, `"x"`)
		})
	}
}

// An agent and its child can have any names.
func TestTheNamesOfAnAgentAndItsChildAreLong(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	name := strings.Repeat("я", 64)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		_, err := agentwait.Await(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "echo", ID: strings.Repeat("y", 124)}))
		if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "give the child, or a task above it, a shorter name") {
			t.Errorf("a child with a long ID: %v", err)
		}
		first := agentwait.Schedule[string](a, "first", queue.Task{Kind: "echo", Name: name})
		again := agentwait.Schedule[string](a, "again", queue.Task{Kind: "echo", Name: name})
		all, err := agentwait.JoinAll(a, first, again)
		return strings.Join(all, " "), err
	})
	r, err := s.q.Enqueue(t.Context(), queue.Task{Kind: "agent", Name: name, Payload: []byte(`""`)})
	if err != nil {
		t.Fatal(err)
	}
	s.drain()
	s.completed(r.ID, `"first first"`)
}

// ScheduleAll puts the children that name no queue into the queue of the call.
func TestAListOfChildrenHasAQueue(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		agentwait.ScheduleAll[string](a, "pages",
			agentwait.Entry{In: "one", Task: queue.Task{Kind: "echo", MaxRetries: 2}},
			agentwait.Entry{In: "two", Task: queue.Task{Kind: "echo", Queue: "slow", IdempotencyKey: "two"}})
		return "", errors.Join(a.Start(), agentwait.Sleep(a, 1e9))
	})
	id := s.enqueue("agent", "")
	s.run(1)
	for name, want := range map[string]string{".1": `pages "one"`, ".two": `slow "two"`} {
		if r := s.get(id + name); r.Queue+" "+string(r.Payload) != want {
			t.Errorf("%s is in queue %s, with %s: want %s", r.ID, r.Queue, r.Payload, want)
		}
	}
}

// The name of a child is any text. A second call with the name returns the first child, in a replay too.
func TestANameOfAChildCanBeAnyText(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		order := func(what, name string) *agentwait.Future[string] {
			return agentwait.Schedule[string](a, what, queue.Task{Kind: "echo", Name: name})
		}
		first, second, third := order("first", "orders/17"), order("second", "orders/17"), order("third", "17")
		if first.ID() != a.ID()+".e-orders_2f17" || second.ID() != first.ID() || third.ID() != a.ID()+".n-17" {
			t.Errorf("the children are %s, %s and %s", first.ID(), second.ID(), third.ID())
		}
		_, err := agentwait.Await(a, agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", Name: "a", ID: "b"}))
		if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "set one of Name, ID and IdempotencyKey") {
			t.Errorf("a child with a name and an ID: %v, want it refused", err)
		}
		all, err := agentwait.JoinAll(a, first, second, third)
		return strings.Join(all, " "), err
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"first first third"`)
}
