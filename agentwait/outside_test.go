package agentwait_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestASignalReachesTheAgentWhicheverSideIsFirst(t *testing.T) {
	for name, early := range map[string]bool{"the signal is first": true, "the agent is first": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				return agentwait.Await(a, agentwait.Signal[string](a, "go"))
			})
			id := s.enqueue("agent", "")
			if !early {
				s.run(1)
				s.is(id, queue.Waiting)
			}
			r, err := s.q.Signal(s.ctx, id, "go", []byte(`"now"`))
			if err != nil || !r.Done {
				t.Fatalf("the signal came to %+v, %v", r, err)
			}
			again, err := s.q.Signal(s.ctx, id, "go", []byte(`"later"`))
			if err != nil || again.Done || string(again.Result) != `"now"` {
				t.Fatalf("a second signal came to %+v, %v", again, err)
			}
			s.drain()
			s.completed(id, `"now"`)
			if _, err := s.q.Signal(s.ctx, id, "more", nil); !errors.Is(err, refusal.ErrOwnerEnded) {
				t.Fatalf("a signal to an agent that has ended: %v", err)
			}
		})
	}
}

func TestASignalThatDoesNotComeInTime(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		_, err := agentwait.Await(a.With(agentwait.Wait{Limit: time.Minute}), agentwait.Signal[string](a, "go"))
		var late *agentwait.WaitTimeoutError
		if errors.As(err, &late) {
			return "went on without", nil
		}
		return "", err
	})
	id := s.enqueue("agent", "")
	s.run(1)
	s.advance(time.Minute)
	s.is(id, queue.Waiting)
	s.advance(time.Millisecond)
	s.drain()
	s.completed(id, `"went on without"`)
}

func TestSignalsThatCannotBe(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	id := s.enqueue("agent", "")
	for name, want := range map[string]error{"": refusal.ErrInvalid, "a.b": refusal.ErrInvalid, "-": refusal.ErrInvalid} {
		if _, err := s.q.Signal(s.ctx, id, name, nil); !errors.Is(err, want) {
			t.Errorf("signal %q: %v, want %v", name, err, want)
		}
	}
	if _, err := s.q.Signal(s.ctx, "0-NOBODY", "go", nil); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("a signal to nobody: %v", err)
	}
}

func TestAPromiseIsSettledFromOutside(t *testing.T) {
	s := newStage(t)
	var asked string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		yes := agentwait.Promise[string](a, "approval", time.Hour)
		no := agentwait.Promise[string](a, "", time.Hour)
		if err := a.Start(); err != nil {
			return "", err
		}
		asked = yes.ID()
		settled, err := agentwait.JoinAllSettled(a, yes, no)
		if err != nil {
			return "", err
		}
		return outcomes(settled.Outcomes) + " " + strings.ReplaceAll(fmt.Sprint(settled.Failed[0].Err), a.ID(), "A"), nil
	})
	id := s.enqueue("agent", "")
	s.run(1)
	if r, err := s.q.Resolve(s.ctx, asked, []byte(`"yes"`)); err != nil || !r.Done {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := s.q.Reject(s.ctx, id+".1", "no"); err != nil || !r.Done {
		t.Fatalf("%+v, %v", r, err)
	}
	s.drain()
	s.completed(id, `"0:COMPLETED=yes 1:FAILED Task 'promise' (id=A.1) failed: no"`)
}

func TestASleepNeedsNobody(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		if err := agentwait.Sleep(a, 0); err != nil {
			return "", err
		}
		return "awake", agentwait.Sleep(a, 90*24*time.Hour)
	})
	id := s.enqueue("agent", "")
	s.run(1)
	s.advance(90*24*time.Hour - time.Millisecond)
	s.is(id, queue.Waiting)
	s.advance(time.Millisecond)
	s.drain()
	s.completed(id, `"awake"`)
}

func TestCancelTellsWhatEachTaskCameTo(t *testing.T) {
	s := newStage(t)
	s.cast()
	var first, again string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		all := cs(a, "a fail open gone")
		if _, err := agentwait.JoinNSettled(a, 2, all...); err != nil {
			return "", err
		}
		tell := func(results []agentwait.CancelResult[string]) string {
			var words []string
			for _, r := range results {
				words = append(words, fmt.Sprintf("%t%t%t%t%s%s", r.Cancelled, r.AlreadyCompleted, r.AlreadyFailed, r.AlreadyCancelled, r.Value, r.Error))
			}
			return strings.NewReplacer("true", "+", "false", "-").Replace(strings.Join(words, " "))
		}
		results, err := agentwait.Cancel(a, "enough", all...)
		if err != nil {
			return "", err
		}
		if text := tell(results); first != "" && text != first {
			t.Errorf("the replay was told %s, the first run %s", text, first)
		} else {
			first = text
		}
		if results, err = agentwait.Cancel(a, "enough", all...); err != nil {
			return "", err
		}
		again = tell(results)
		return agentwait.Await(a, child(a, "end"))
	})
	id := s.enqueue("agent", "")
	s.run(3)
	if _, err := s.q.Cancel(s.ctx, id+".4", "not wanted"); err != nil {
		t.Fatal(err)
	}
	s.drain()
	s.completed(id, `"end"`)
	if want := "-+--a --+-boom +--- ---+not wanted"; first != want {
		t.Errorf("told %s, want %s", first, want)
	}
	if want := "-+--a --+-boom ---+enough ---+not wanted"; again != want {
		t.Errorf("told again %s, want %s", again, want)
	}
}

// What is refused changes nothing, for the agent or anybody else.
func TestWhatAnAgentMayNotWaitFor(t *testing.T) {
	s := newStage(t)
	s.cast()
	stranger := s.enqueue("child", `"open"`)
	deep := func(a *agent) string { return a.ID() + strings.Repeat(".x", 17) }
	for name, c := range map[string]struct {
		do   func(a *agent) error
		is   error
		says string
	}{
		"a stranger": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, stranger))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"a stranger among its own": {func(a *agent) error {
			_, err := agentwait.Select(a, child(a, "a"), agentwait.Of[string](a, stranger))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"a grandchild": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, a.ID()+".1.1"))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"itself": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, a.ID()))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"a child that is not there": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Child[string](a, "nobody"))
			return err
		}, refusal.ErrNotFound, "no such task"},
		"a child too deep": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, deep(a)))
			return err
		}, agentwait.ErrNotOwner, "not owned"},
		"two children of one name": {func(a *agent) error {
			agentwait.Schedule[string](a, "x", queue.Task{Kind: "child", ID: "one"})
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: "one"}))
			return err
		}, refusal.ErrInvalid, `two children of the name "one"`},
		"a child with a number for a name": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: "7"}))
			return err
		}, refusal.ErrInvalid, "is a number"},
		"a child with the name of a signal": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: "s-go"}))
			return err
		}, refusal.ErrInvalid, "use Signal"},
		"a child with an id for a name": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: a.ID() + ".x"}))
			return err
		}, refusal.ErrInvalid, "has a dot"},
		"a child without a kind": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{}))
			return err
		}, refusal.ErrInvalid, "kind"},
		"a child without JSON": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, func() {}, queue.Task{Kind: "child"}))
			return err
		}, nil, "has no JSON"},
		"a budget of nothing": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", Budget: 0.5}))
			return err
		}, refusal.ErrInvalid, "needs an owner with a deadline"},
		"cancel a stranger": {func(a *agent) error {
			_, err := agentwait.Cancel(a, "", agentwait.Of[string](a, stranger))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"a checkpoint too large": {func(a *agent) error { return a.Checkpoint(strings.Repeat("x", 2<<20)) }, refusal.ErrInvalid, "the limit is 1048576"},
		"a step without a name":  {func(a *agent) error { _, err := agentwait.Step[int](a, "", nil); return err }, refusal.ErrInvalid, "name of a step"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.cast()
			var got error
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				got = c.do(a)
				return "", got
			})
			id := s.enqueue("agent", "")
			s.run(1)
			if got == nil || c.is != nil && !errors.Is(got, c.is) || !strings.Contains(got.Error(), c.says) {
				t.Fatalf("%v, want %v that says %q", got, c.is, c.says)
			}
			r := s.get(id)
			if r.Status != queue.Failed || r.Fields["children"] != "" || r.Fields["journal"] != "" {
				t.Fatalf("it left %v", r.Fields)
			}
		})
	}
	s.is(stranger, queue.Pending)
}
