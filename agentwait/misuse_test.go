package agentwait_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// A replay does not run the function of a step, so that function must not use the agent. An agent that
// does ends as FAILED.
func TestAnAgentThatIsUsedInsideItsStepEnds(t *testing.T) {
	for name, use := range map[string]func(a *agent) error{
		"Rand":       func(a *agent) error { a.Rand().Uint64(); return nil },
		"Now":        func(a *agent) error { a.Now(); return nil },
		"Start":      func(a *agent) error { return a.Start() },
		"Checkpoint": func(a *agent) error { return a.Checkpoint(1) },
		"Schedule":   func(a *agent) error { echo(a, "x"); return nil },
		"Promise":    func(a *agent) error { agentwait.Promise[string](a, "p", 0); return nil },
		"Signal":     func(a *agent) error { _, err := agentwait.Await(a, agentwait.Signal[string](a, "go")); return err },
		"Sleep":      func(a *agent) error { return agentwait.Sleep(a, time.Second) },
		"Cancel": func(a *agent) error {
			_, err := agentwait.Cancel(a, "", agentwait.Child[string](a, "1"))
			return err
		},
		"a wait": func(a *agent) error { _, err := agentwait.Await(a, agentwait.Child[string](a, "1")); return err },
		"a step": func(a *agent) error {
			_, err := agentwait.Step(a, "inner", func(context.Context) (int, error) { return 1, nil })
			return err
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				if _, err := agentwait.Await(a, echo(a, "x")); err != nil {
					return "", err
				}
				agentwait.Step(a, "charge", func(context.Context) (int, error) {
					if err := use(a); err != nil && !errors.Is(err, refusal.ErrInvalid) {
						t.Errorf("the call returned %v, want ErrInvalid", err)
					}
					return 1, nil
				})
				return agentwait.Await(a, echo(a, "y"))
			})
			r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "agent", MaxRetries: 3})
			if err != nil {
				t.Fatal(err)
			}
			if n := s.drain(); n != 3 {
				t.Errorf("%d tasks ran, want 3: two runs of the agent, and a child", n)
			}
			want := `invalid argument: the agent is used inside the function of its step, "charge", which a replay does not run: ` +
				"make these calls before the step and pass their results in"
			if r := s.get(r.ID); r.Status != queue.Failed || r.Error != want {
				t.Errorf("the agent is %s: %s; want FAILED: %s", r.Status, r.Error, want)
			}
		})
	}
}

// An agent that returns ErrSuspended although no wait has suspended it ends as FAILED. Otherwise it would
// run again and again.
func TestErrSuspendedWithoutAWaitEndsTheAgent(t *testing.T) {
	for name, do := range map[string]func(a *agent) error{
		"from a handler":  func(*agent) error { return agentwait.ErrSuspended },
		"wrapped":         func(*agent) error { return fmt.Errorf("later: %w", agentwait.ErrSuspended) },
		"in a RetryAfter": func(*agent) error { return worker.RetryAfter(time.Second, worker.ErrSuspended) },
		"from a step": func(a *agent) error {
			_, err := agentwait.Step(a, "s", func(context.Context) (int, error) { return 0, agentwait.ErrSuspended })
			return err
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) { return "", do(a) })
			id := s.enqueue("agent", "")
			s.run(1)
			if r := s.get(id); r.Status != queue.Failed || !strings.Contains(r.Error, "no wait has suspended the agent: return ErrSuspended only when a wait returns it") {
				t.Errorf("the agent is %s: %s; want FAILED", r.Status, r.Error)
			}
		})
	}
}

// The context of a suspended agent ends, so that functions that use it return and the worker is free.
func TestASuspensionEndsTheContextOfTheAgent(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	runs := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		runs++
		v, err := agentwait.Await(a, echo(a, "x"))
		if ended := a.Err() != nil; ended != (runs == 1) {
			t.Errorf("run %d: the context has ended: %t", runs, ended)
		}
		if err != nil {
			if cause := context.Cause(a); cause != agentwait.ErrSuspended {
				t.Errorf("the cause of the context is %v, want ErrSuspended", cause)
			}
			return "", a.Err()
		}
		return v, nil
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"x"`)
}

// Payloads and results are copied: a handler can change its own bytes afterwards.
func TestBytesAreNotShared(t *testing.T) {
	s := newStage(t)
	worker.Handle(s.w, "raw", func(_ context.Context, in []byte) ([]byte, error) { return in, nil })
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		buffer := []byte("one")
		one := agentwait.Schedule[[]byte](a, buffer, queue.Task{Kind: "raw"})
		copy(buffer, "two")
		two := agentwait.Schedule[[]byte](a, buffer, queue.Task{Kind: "raw"})
		got, err := agentwait.JoinAll(a, one, two, one)
		if err != nil {
			return "", err
		}
		copy(got[0], "xxx")
		again, err := agentwait.Value(a, one)
		return fmt.Sprintf("%s %s %s %s", got[0], got[1], got[2], again), err
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"xxx two one one"`)
}

func TestTheNameOfAStepIsQuotedOnce(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, name string) (int, error) {
		return agentwait.Step(a, name, func(context.Context) (int, error) { return 1, nil })
	})
	for payload, says := range map[string]string{
		`""`:     `invalid argument: the name of a step, "", must be one line of 1 to 128 bytes`,
		`"a\nb"`: `invalid argument: the name of a step, "a\nb", must be one line of 1 to 128 bytes`,
	} {
		id := s.enqueue("agent", payload)
		s.run(1)
		if r := s.get(id); r.Error != says {
			t.Errorf("the error is %s, want %s", r.Error, says)
		}
	}
}
