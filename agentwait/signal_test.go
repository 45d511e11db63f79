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

type decision struct{ Go bool }

// An agent that is told what it cannot use asks again, as often as it takes, and each replay finds the same.
func TestAnAgentAsksAgainForASignalThatItCannotUse(t *testing.T) {
	s := newStage(t)
	var told []string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		var said []string
		f := agentwait.Signal[decision](a, "go")
		d, err := agentwait.Await(a, f)
		for bad := (*agentwait.BadSignalError)(nil); errors.As(err, &bad); {
			said = append(said, bad.Signal+" "+string(bad.Value))
			f = agentwait.NextSignal(a, f)
			d, err = agentwait.Await(a, f)
		}
		told = append(told, strings.Join(said, ", "))
		return fmt.Sprint(d), err
	})
	id := s.enqueue("agent", "")
	say := func(what string) {
		t.Helper()
		if r, err := s.q.Signal(s.ctx, id, "go", []byte(what)); err != nil || !r.Done {
			t.Fatalf("signal %s: %+v, %v", what, r, err)
		}
		s.drain()
	}
	say("early, and no JSON")
	say(`["no decision"]`)
	say(`"nor is this"`)
	if r, err := agentwait.SendSignal(s.ctx, s.q, id, "go", decision{true}); err != nil || !r.Done {
		t.Fatalf("SendSignal: %+v, %v", r, err)
	}
	s.drain()
	s.completed(id, `"{true}"`)
	want := []string{"go early, and no JSON", `go early, and no JSON, go ["no decision"]`, `go early, and no JSON, go ["no decision"], go "nor is this"`}
	last := told[len(told)-1]
	if last != want[2] || told[0] != want[0] {
		t.Errorf("the runs were told %q, want %q at first and %q at last", told, want[0], want[2])
	}
	if r, err := s.q.Signal(s.ctx, id, "go", []byte(`{}`)); r.Done || !errors.Is(err, refusal.ErrOwnerEnded) && err != nil {
		t.Errorf("one too many: %+v, %v", r, err)
	}
}

// While an agent waits for JSON, a payload that is not JSON is refused at the sender, and the agent goes on waiting.
func TestASignalThatIsNotJSONIsRefusedWhereItIsSent(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		d, err := agentwait.Await(a, agentwait.Signal[decision](a, "go"))
		return fmt.Sprint(d), err
	})
	agentwait.Handle(s.w, "raw", func(a *agent, _ string) (string, error) {
		b, err := agentwait.Await(a, agentwait.Signal[[]byte](a, "go"))
		return string(b), err
	})
	id, raw := s.enqueue("agent", ""), s.enqueue("raw", "")
	s.drain()
	before := s.get(id + ".s-go").Status
	if _, err := s.q.Signal(s.ctx, id, "go", []byte("{broken")); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "is not JSON: the agent waits for JSON") {
		t.Errorf("what is not JSON: %v", err)
	}
	if after := s.get(id + ".s-go").Status; before != queue.Pending || after != before {
		t.Errorf("the signal was %s, and is %s", before, after)
	}
	if _, err := agentwait.SendSignal(s.ctx, s.q, id, "go", make(chan int)); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("what has no JSON: %v", err)
	}
	for agent, what := range map[string]string{id: `{"Go":true}`, raw: "{broken"} {
		if r, err := s.q.Signal(s.ctx, agent, "go", []byte(what)); err != nil || !r.Done {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
	}
	s.drain()
	s.completed(id, `"{true}"`)
	s.completed(raw, `"{broken"`)
}

func TestWhatIsNotASignalIsNotAskedForAgain(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		f := echo(a, "x")
		if _, err := agentwait.Await(a, agentwait.NextSignal(a, f)); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("an echo: %v", err)
		}
		if _, err := agentwait.Await(a, agentwait.Signal[string](a, "go__2")); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("a name that stands for one asked for again: %v", err)
		}
		return agentwait.Await(a, f)
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"x"`)
	s.advance(time.Second)
}
