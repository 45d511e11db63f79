package agentwait_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// record exports an agent, and reads the JSON of the recording.
func (s *stage) record(id string) *agentwait.Recording {
	s.t.Helper()
	r, err := agentwait.Export(s.ctx, s.q, id)
	if err != nil {
		s.t.Fatal(err)
	}
	line, err := json.Marshal(r)
	if err != nil {
		s.t.Fatal(err)
	}
	again, err := agentwait.ReadRecordings(bytes.NewReader(append(line, '\n')))
	if err != nil || len(again) != 1 {
		s.t.Fatalf("ReadRecordings = %v, %v", again, err)
	}
	return again[0]
}

// A recording of an agent is replayed without any call to Redis and without an effect, up to where the agent is.
func TestARecordingIsReplayed(t *testing.T) {
	type code = func(a *agent, _ string) (string, error)
	named := func(a *agent, name string) *agentwait.Future[string] {
		return agentwait.Schedule[string](a, name, queue.Task{Kind: "echo", ID: name})
	}
	steps := 0
	step := func(a *agent, name string) error {
		_, err := agentwait.Step(a, name, func(context.Context) (string, error) { steps++; return "\xff" + name, nil })
		return err
	}
	old := func(a *agent, _ string) (string, error) {
		if again, err := a.Restore(new(int)); !again {
			first, startErr := named(a, "x"), a.Start()
			x, awaitErr := agentwait.Await(a, first)
			if err := errors.Join(err, startErr, awaitErr); err != nil {
				return "", err
			}
			if err := errors.Join(a.EnsureKind("later", queue.Defaults{}), a.Checkpoint(len(x))); err != nil {
				return "", err
			}
		}
		a.Now()
		if _, err := agentwait.Await(a, echo(a, "y")); err != nil {
			return "", err
		}
		cancelled := named(a, "cancelled")
		if _, err := agentwait.Cancel(a, "enough", cancelled); err != nil {
			return "", err
		}
		if err := step(a, "charge"); err != nil {
			return "", err
		}
		approved, err := agentwait.Await(a, agentwait.Promise[bool](a, "approval", 12*time.Hour))
		if !errors.Is(err, agentwait.ErrSuspended) {
			t.Errorf("the wait for the approval returned %v, %v, want ErrSuspended", approved, err)
		}
		return fmt.Sprint(approved), errors.Join(err, step(a, "later"))
	}
	stopped := func(calls int) code { // old code that returns an error before a call
		return func(a *agent, in string) (string, error) {
			if calls == 0 {
				return "", errBoom
			}
			a.Now()
			return "", errBoom
		}
	}
	for name, c := range map[string]struct {
		is   code
		says string // "": it fits
	}{
		"the same code": {old, ""},
		"a step more": {func(a *agent, in string) (string, error) {
			err := step(a, "more")
			if err != nil {
				return "", err
			}
			return old(a, in)
		}, `call 2 of agent A was a call of Now, and is now the step "more"`},
		"another wait at the end": {func(a *agent, in string) (string, error) {
			a.Now()
			_, err := agentwait.Await(a, echo(a, "y"))
			if err != nil {
				return "", err
			}
			if _, err = agentwait.Cancel(a, "enough", named(a, "cancelled")); err != nil {
				return "", err
			}
			if err := step(a, "charge"); err != nil {
				return "", err
			}
			return "", agentwait.Sleep(a, time.Hour)
		}, "call 6 of agent A was a wait for all of 1 (approval), and is now a wait for all of 1 (2)"},
		"a step in place of the wait": {func(a *agent, in string) (string, error) {
			a.Now()
			_, err := agentwait.Await(a, echo(a, "y"))
			if err != nil {
				return "", err
			}
			if _, err = agentwait.Cancel(a, "enough", named(a, "cancelled")); err != nil {
				return "", err
			}
			if err := step(a, "charge"); err != nil {
				return "", err
			}
			return "", step(a, "ship")
		}, `call 6 of agent A was a wait for all of 1 (approval), and is now the step "ship"`},
		"another child at a Start": {func(a *agent, in string) (string, error) {
			a.Now()
			echo(a, "Y")
			return "", a.Start()
		}, `call 2 of agent A was child A.1 of kind echo in queue default with payload "\"y\"", and is now child A.1 of kind echo in queue default with payload "\"Y\""`},
		"it returns":                  {func(*agent, string) (string, error) { return "", nil }, "was a call of Now, and is now missing: the handler returned before it"},
		"an error":                    {stopped(0), "the handler ended before call 2 of agent A, which is a call of Now: boom"},
		"an error later":              {stopped(1), "the handler ended before call 3 of agent A, which is a wait for all of 1 (1): boom"},
		"another type of its payload": {nil, "cannot decode the payload of kind agent"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := playStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", old)
			id := s.enqueue("agent", "\"\"")
			s.drain()
			r := s.record(id)
			w := s.another()
			if c.is != nil {
				agentwait.Handle(w, "agent", c.is)
			} else {
				agentwait.Handle(w, "agent", func(*agent, int) (string, error) { return "", nil })
			}
			before, calls := steps, 0
			s.rdb.AddHook(queuetest.Around{Before: func() { calls++ }})
			err := r.Replay(s.ctx, w)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), id, "A"), c.says)) {
				t.Errorf("Replay = %v, want %q", err, c.says)
			}
			var diverged *agentwait.DivergedError
			if errors.As(err, &diverged) != strings.Contains(c.says, "is now") {
				t.Errorf("Replay = %T %v", err, err)
			}
			if calls != 0 || steps != before {
				t.Errorf("the replay made %d calls to Redis, and ran %d steps: want none", calls, steps-before)
			}
			s.is(id, queue.Waiting)
		})
	}
}

// An agent that is not in a wait is replayed to the end of its journal.
func TestARecordingOfARunningAgentEndsWithItsJournal(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	var r *agentwait.Recording
	var id string
	late := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		if _, err := agentwait.Await(a, echo(a, "x")); err != nil {
			return "", err
		}
		if id == "" {
			id = a.ID()
			r = s.record(id)
		}
		late++
		return agentwait.Step(a, "last", func(context.Context) (string, error) { return "done", nil })
	})
	s.enqueue("agent", "")
	s.drain()
	if err := r.Replay(s.ctx, s.w); err != nil {
		t.Errorf("Replay = %v", err)
	}
	if late != 2 {
		t.Errorf("the handler came behind its wait %d times, want 2", late)
	}
}

func TestWhatCannotBeExportedOrReplayed(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		return "", agentwait.Sleep(a, time.Hour)
	})
	ended := s.enqueue("echo", `"x"`)
	s.run(1)
	fresh := s.enqueue("echo", `"x"`)
	for name, c := range map[string]struct {
		id   string
		want error
	}{
		"no such task":    {"0-none", refusal.ErrNotFound},
		"an ended task":   {ended, refusal.ErrInvalid},
		"a task":          {fresh, refusal.ErrInvalid},
		"an id of no one": {"x", refusal.ErrInvalid},
	} {
		if r, err := agentwait.Export(s.ctx, s.q, c.id); !errors.Is(err, c.want) {
			t.Errorf("%s: Export = %v, %v, want %v", name, r, err, c.want)
		}
	}
	s.run(1)
	id := s.enqueue("agent", "")
	s.run(1)
	r := s.record(id)
	plain := s.another()
	worker.Handle(plain, "agent", func(context.Context, string) (string, error) { t.Error("the handler ran"); return "", nil })
	for name, c := range map[string]struct {
		w    *worker.Worker
		says string
	}{
		"no handler":                        {s.another(), `kind "agent" has no handler here`},
		"a handler that is no agent's":      {plain, `the handler of kind "agent" is not an agent's any more`},
		"no worker is refused, not a panic": {nil, "must not be nil"},
	} {
		if err := r.Replay(s.ctx, c.w); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Replay = %v, want %q", name, err, c.says)
		}
	}
	for _, line := range []string{"{", "[]", "{}", `{"type":"agent","format":2}`, `{"type":"agent","format":1,"task":{"id":""}}`} {
		if _, err := agentwait.ReadRecordings(strings.NewReader(line)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("ReadRecordings of %s = %v, want an error that names line 1", line, err)
		}
	}
}
