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
				t.Fatalf("Signal = %+v, %v, want Done", r, err)
			}
			again, err := s.q.Signal(s.ctx, id, "go", []byte(`"later"`))
			if err != nil || again.Done || string(again.Result) != `"now"` {
				t.Fatalf("the second Signal = %+v, %v, want not Done, with the first result", again, err)
			}
			s.drain()
			s.completed(id, `"now"`)
			if _, err := s.q.Signal(s.ctx, id, "more", nil); !errors.Is(err, refusal.ErrOwnerEnded) {
				t.Fatalf("Signal to an agent that has ended = %v, want ErrOwnerEnded", err)
			}
		})
	}
}

func TestASignalThatDoesNotComeBeforeTheLimit(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		_, err := agentwait.Await(a.With(agentwait.Wait{Limit: time.Minute}), agentwait.Signal[string](a, "go"))
		var late *agentwait.WaitTimeoutError
		if errors.As(err, &late) {
			return "no signal", nil
		}
		return "", err
	})
	id := s.enqueue("agent", "")
	s.run(1)
	s.advance(time.Minute)
	s.is(id, queue.Waiting)
	s.advance(time.Millisecond)
	s.drain()
	s.completed(id, `"no signal"`)
}

func TestInvalidSignalsAreRefused(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	id := s.enqueue("agent", "")
	for name, want := range map[string]error{"": refusal.ErrInvalid, "a.b": refusal.ErrInvalid, "-": refusal.ErrInvalid} {
		if _, err := s.q.Signal(s.ctx, id, name, nil); !errors.Is(err, want) {
			t.Errorf("signal %q: %v, want %v", name, err, want)
		}
	}
	if _, err := s.q.Signal(s.ctx, "0-NOBODY", "go", nil); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Signal to an unknown agent = %v, want ErrNotFound", err)
	}
}

func TestAPromiseIsSettledFromOutside(t *testing.T) {
	s := newStage(t)
	var promise string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		yes := agentwait.Promise[string](a, "approval", time.Hour)
		no := agentwait.Promise[string](a, "", time.Hour)
		if err := a.Start(); err != nil {
			return "", err
		}
		promise = yes.ID()
		settled, err := agentwait.JoinAllSettled(a, yes, no)
		if err != nil {
			return "", err
		}
		return outcomes(settled.Outcomes) + " " + strings.ReplaceAll(fmt.Sprint(settled.Failed[0].Err), a.ID(), "A"), nil
	})
	id := s.enqueue("agent", "")
	s.run(1)
	if r, err := s.q.Resolve(s.ctx, promise, []byte(`"yes"`)); err != nil || !r.Done {
		t.Fatalf("Resolve = %+v, %v, want Done", r, err)
	}
	if r, err := s.q.Reject(s.ctx, id+".1", "no"); err != nil || !r.Done {
		t.Fatalf("Reject = %+v, %v, want Done", r, err)
	}
	s.drain()
	s.completed(id, `"0:COMPLETED=yes 1:FAILED Task 'promise' (id=A.1) failed: no"`)
}

// A result of another type than the agent awaits is refused where it comes in. The agent waits on, and gets the next one.
func TestAPromiseRefusesAResultOfAnotherType(t *testing.T) {
	s := newStage(t)
	type answer struct {
		Approved bool      `json:"approved"`
		Note     string    `json:"note,omitempty"`
		Until    time.Time `json:"until,omitzero"`
	}
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		yes, detailed, raw := agentwait.Promise[bool](a, "yes", time.Hour), agentwait.Promise[answer](a, "detailed", time.Hour), agentwait.Promise[[]byte](a, "raw", time.Hour)
		if err := a.Start(); err != nil {
			return "", err
		}
		y, errYes := agentwait.Await(a, yes)
		d, errDetailed := agentwait.Await(a, detailed)
		r, errRaw := agentwait.Await(a, raw)
		return fmt.Sprint(y, d.Approved, d.Note, string(r)), errors.Join(errYes, errDetailed, errRaw)
	})
	id := s.enqueue("agent", "")
	s.run(1)
	for _, c := range []struct{ name, result, why string }{
		{"yes", `"yes"`, "result must be JSON of type bool, true or false: it is a string"},
		{"yes", ``, "type bool, true or false: it is empty"},
		{"detailed", `{"aproved":true}`, "result must be JSON of type {approved: bool, note: string?, until: time?}: approved is missing"},
		{"detailed", `{"approved":true,"until":"tomorrow"}`, `until is not a time such as "2026-11-26T20:00:00Z"`},
	} {
		if r, err := s.q.Resolve(s.ctx, id+"."+c.name, []byte(c.result)); r.Done || !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("Resolve of %s with %s = %+v, %v, want ErrInvalid: %s", c.name, c.result, r, err, c.why)
		}
	}
	s.is(id, queue.Waiting)
	for name, result := range map[string]string{"yes": "true", "detailed": `{"Approved":true,"note":"<&>"}`, "raw": "\xff"} {
		if r, err := s.q.Resolve(s.ctx, id+"."+name, []byte(result)); err != nil || !r.Done {
			t.Errorf("Resolve of %s with %s = %+v, %v", name, result, r, err)
		}
	}
	s.drain()
	s.completed(id, `"true true<&>\ufffd"`)
}

func TestASleepNeedsNoWorker(t *testing.T) {
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

func TestCancelReturnsTheStateOfEachTask(t *testing.T) {
	s := newStage(t)
	s.cast()
	var first, again string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		all := cs(a, "a fail open gone")
		if _, err := agentwait.JoinNSettled(a, 2, all...); err != nil {
			return "", err
		}
		format := func(results []agentwait.CancelResult[string]) string {
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
		if text := format(results); first != "" && text != first {
			t.Errorf("the replay got %s, the first run %s", text, first)
		} else {
			first = text
		}
		if results, err = agentwait.Cancel(a, "enough", all...); err != nil {
			return "", err
		}
		again = format(results)
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
		t.Errorf("the first Cancel returned %s, want %s", first, want)
	}
	if want := "-+--a --+-boom ---+enough ---+not wanted"; again != want {
		t.Errorf("the second Cancel returned %s, want %s", again, want)
	}
}

// A refused call changes nothing, neither the agent nor another task.
func TestCallsThatAreRefused(t *testing.T) {
	s := newStage(t)
	s.cast()
	stranger := s.enqueue("child", `"open"`)
	deep := func(a *agent) string { return a.ID() + strings.Repeat(".x", 17) }
	for name, c := range map[string]struct {
		do   func(a *agent) error
		is   error
		says string
	}{
		"a task of another owner": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, stranger))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"a task of another owner among its children": {func(a *agent) error {
			_, err := agentwait.Select(a, child(a, "a"), agentwait.Of[string](a, stranger))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"a grandchild": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, a.ID()+".1.1"))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"the agent itself": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, a.ID()))
			return err
		}, agentwait.ErrNotOwner, "Task not owned by agent"},
		"a child that does not exist": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Child[string](a, "nobody"))
			return err
		}, refusal.ErrNotFound, "no such task"},
		"a child too deep": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Of[string](a, deep(a)))
			return err
		}, agentwait.ErrNotOwner, "not owned"},
		"two children with one name": {func(a *agent) error {
			agentwait.Schedule[string](a, "x", queue.Task{Kind: "child", ID: "one"})
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: "one"}))
			return err
		}, refusal.ErrInvalid, `two children named "one"`},
		"a child whose name is a number": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: "7"}))
			return err
		}, refusal.ErrInvalid, "is a number"},
		"a child with the name of a signal": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: "s-go"}))
			return err
		}, refusal.ErrInvalid, "use Signal"},
		"a child whose name is an id": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", ID: a.ID() + ".x"}))
			return err
		}, refusal.ErrInvalid, "has a dot"},
		"a child without a kind": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{}))
			return err
		}, refusal.ErrInvalid, "kind"},
		"a child whose payload cannot be encoded": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, func() {}, queue.Task{Kind: "child"}))
			return err
		}, nil, "cannot encode the payload of a child of kind child as JSON"},
		"a budget of an owner without a deadline": {func(a *agent) error {
			_, err := agentwait.JoinAll(a, agentwait.Schedule[string](a, "y", queue.Task{Kind: "child", Budget: 0.5}))
			return err
		}, refusal.ErrInvalid, "needs an owner with a deadline"},
		"Cancel of a task of another owner": {func(a *agent) error {
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
				t.Fatalf("%v, want %v with the text %q", got, c.is, c.says)
			}
			r := s.get(id)
			if r.Status != queue.Failed || r.Fields["children"] != "" || r.Fields["journal"] != "" {
				t.Fatalf("the agent is %v, want FAILED without children and journal", r.Fields)
			}
		})
	}
	s.is(stranger, queue.Pending)
}
