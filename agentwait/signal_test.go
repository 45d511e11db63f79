package agentwait_test

import (
	"encoding/json"
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

// picky has its own UnmarshalJSON, so that any JSON is accepted where it is awaited.
type picky decision

func (p *picky) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*decision)(p)) }

// An agent that cannot decode a signal waits for the next one with NextSignal, several times. A replay gets
// the same signals.
func TestNextSignalFollowsASignalThatCannotBeDecoded(t *testing.T) {
	s := newStage(t)
	var runs []string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		var bads []string
		f := agentwait.Signal[picky](a, "go")
		d, err := agentwait.Await(a, f)
		for bad := (*agentwait.BadSignalError)(nil); errors.As(err, &bad); {
			bads = append(bads, bad.Signal+" "+string(bad.Value))
			f = agentwait.NextSignal(a, f)
			d, err = agentwait.Await(a, f)
		}
		runs = append(runs, strings.Join(bads, ", "))
		return fmt.Sprint(d), err
	})
	id := s.enqueue("agent", "")
	send := func(payload string) {
		t.Helper()
		if r, err := s.q.Signal(s.ctx, id, "go", []byte(payload)); err != nil || !r.Done {
			t.Fatalf("Signal with %s = %+v, %v, want Done", payload, r, err)
		}
		s.drain()
	}
	send("early, and no JSON")
	send(`["no decision"]`)
	send(`"nor is this"`)
	if r, err := agentwait.SendSignal(s.ctx, s.q, id, "go", decision{true}); err != nil || !r.Done {
		t.Fatalf("SendSignal = %+v, %v, want Done", r, err)
	}
	s.drain()
	s.completed(id, `"{true}"`)
	want := []string{"go early, and no JSON", `go early, and no JSON, go ["no decision"]`, `go early, and no JSON, go ["no decision"], go "nor is this"`}
	last := runs[len(runs)-1]
	if last != want[2] || runs[0] != want[0] {
		t.Errorf("the runs got %q, want %q first and %q last", runs, want[0], want[2])
	}
	if r, err := s.q.Signal(s.ctx, id, "go", []byte(`{}`)); r.Done || !errors.Is(err, refusal.ErrOwnerEnded) && err != nil {
		t.Errorf("Signal after the end = %+v, %v, want not Done", r, err)
	}
}

// While an agent waits for a type, another payload is refused at the sender, and the agent continues to wait.
func TestASignalOfAnotherTypeIsRefusedWhereItIsSent(t *testing.T) {
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
	for payload, why := range map[string]string{"{broken": "it is not JSON, see byte 2", `{"Go":"yes"}`: "Go is a string", "": "it is empty"} {
		if _, err := s.q.Signal(s.ctx, id, "go", []byte(payload)); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "payload must be JSON of type {Go: bool}: "+why) {
			t.Errorf("Signal with %q = %v, want ErrInvalid: %s", payload, err, why)
		}
	}
	if after := s.get(id + ".s-go").Status; before != queue.Pending || after != before {
		t.Errorf("the signal was %s, and is %s, want PENDING", before, after)
	}
	if _, err := agentwait.SendSignal(s.ctx, s.q, id, "go", make(chan int)); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("SendSignal of a value that cannot be encoded = %v, want ErrInvalid", err)
	}
	for agent, payload := range map[string]string{id: `{"Go":true}`, raw: "{broken"} {
		if r, err := s.q.Signal(s.ctx, agent, "go", []byte(payload)); err != nil || !r.Done {
			t.Errorf("Signal with %s = %+v, %v, want Done", payload, r, err)
		}
	}
	s.drain()
	s.completed(id, `"{true}"`)
	s.completed(raw, `"{broken"`)
}

func TestNextSignalNeedsASignal(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		f := echo(a, "x")
		if _, err := agentwait.Await(a, agentwait.NextSignal(a, f)); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("NextSignal of a child that is not a signal: %v, want ErrInvalid", err)
		}
		if _, err := agentwait.Await(a, agentwait.Signal[string](a, "go__2")); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("Signal with a name that NextSignal uses: %v, want ErrInvalid", err)
		}
		return agentwait.Await(a, f)
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"x"`)
	s.advance(time.Second)
}
