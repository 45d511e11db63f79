package agentwait_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// unshared schedules a child that Redis refuses: it has a budget, and its owner has no deadline.
func unshared(a *agent, name string) *agentwait.Future[string] {
	return agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", ID: name, Budget: 0.5})
}

// A call that was refused is refused again in a replay, with the same error. The handler has continued
// after the refusal, so it needs the same error to make the same calls.
func TestAReplayIsRefusedWhatTheFirstRunWas(t *testing.T) {
	for name, c := range map[string]struct {
		refused func(a *agent) error
		is      error
		says    string
		then    func(a *agent) *agentwait.Future[string]
	}{
		"a child that is created after the refusal": {
			func(a *agent) error { _, err := agentwait.Await(a, agentwait.Child[string](a, "x")); return err },
			refusal.ErrNotFound, "member A.x: no such task",
			func(a *agent) *agentwait.Future[string] {
				return agentwait.Schedule[string](a, "made", queue.Task{Kind: "echo", ID: "x"})
			},
		},
		"a child that Redis refuses, and another with its name": {
			func(a *agent) error { _, err := agentwait.Await(a, unshared(a, "x")); return err },
			refusal.ErrInvalid, "child A.x: budget_percent",
			func(a *agent) *agentwait.Future[string] {
				return agentwait.Schedule[string](a, "made", queue.Task{Kind: "echo", ID: "x"})
			},
		},
		"a Cancel with children that Redis refuses": {
			func(a *agent) error {
				unshared(a, "one")
				unshared(a, "two")
				_, err := agentwait.Cancel(a, "", agentwait.Promise[string](a, "p", 0))
				return err
			},
			refusal.ErrInvalid, "child A.two: budget_percent",
			func(a *agent) *agentwait.Future[string] { return echo(a, "made") },
		},
		"a wait that has too many children for its call": {
			func(a *agent) error {
				all := futures{unshared(a, "one")}
				for range 501 {
					all = append(all, agentwait.Promise[string](a, "", 0))
				}
				_, err := agentwait.JoinAll(a, all...)
				return err
			},
			refusal.ErrInvalid, "child A.one: budget_percent",
			func(a *agent) *agentwait.Future[string] { return echo(a, "made") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			var refusals []string
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				err := c.refused(a)
				if !errors.Is(err, c.is) {
					return "", fmt.Errorf("refused by %v, want %v", err, c.is)
				}
				refusals = append(refusals, strings.ReplaceAll(err.Error(), a.ID(), "A"))
				return agentwait.Await(a, c.then(a))
			})
			id := s.enqueue("agent", "")
			s.drain()
			s.completed(id, `"made"`)
			if len(refusals) != 2 || refusals[0] != refusals[1] || !strings.Contains(refusals[0], c.says) {
				t.Fatalf("the errors of the runs are %q, want twice the same, with the text %q", refusals, c.says)
			}
		})
	}
}

// The children of a large wait are created before it is refused. A retry of the agent does not create them
// again.
func TestARetryAfterARefusedWaitMissesNoChild(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	runs := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		runs++
		all := futures{agentwait.Child[string](a, "nobody")}
		for range 501 {
			all = append(all, agentwait.Promise[string](a, "", 0))
		}
		if _, err := agentwait.JoinAll(a, all...); !errors.Is(err, refusal.ErrNotFound) {
			return "", err
		}
		if _, err := agentwait.Step(a, "s", func(context.Context) (int, error) { return 1, nil }); err != nil || runs == 1 {
			return "", errors.Join(err, errBoom)
		}
		return "done", nil
	})
	r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "agent", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
	if err != nil {
		t.Fatal(err)
	}
	s.run(2)
	s.completed(r.ID, `"done"`)
}

// No later run schedules the children from before a checkpoint, so Checkpoint creates them and returns their
// errors. A wait after it neither returns these errors nor diverges.
func TestACheckpointReportsTheChildrenBeforeIt(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	refusals := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		if again, _ := a.Restore(new(int)); !again {
			agentwait.Schedule[string](a, "fine", queue.Task{Kind: "echo", ID: "good"})
			unshared(a, "bad")
			if err := a.Checkpoint(1); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "child "+a.ID()+".bad: budget_percent") {
				return "", fmt.Errorf("Checkpoint = %w, want the refusal of bad", err)
			}
			refusals++
			if err := a.Checkpoint(2); err != nil {
				return "", err
			}
		}
		return agentwait.Await(a, agentwait.Child[string](a, "good"))
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"fine"`)
	if refusals != 1 {
		t.Fatalf("Checkpoint was refused %d times, want once", refusals)
	}
}

// Now and Step write the journal. They create no children, and return no errors of children.
func TestACallThatOnlyWritesTheJournalConcernsNoChild(t *testing.T) {
	t.Run("400_calls_of_Now", func(t *testing.T) {
		s := newStage(t)
		agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
			if err := a.Checkpoint(1); err != nil {
				return "", err
			}
			agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", ID: "7"})
			echo(a, "y")
			for range 400 {
				a.Now()
			}
			return "done", nil
		})
		id := s.enqueue("agent", "")
		s.run(1)
		if r := s.get(id); r.Status != queue.Failed || !strings.Contains(r.Error, "is a number") || !strings.Contains(r.Error, id+".1 (echo)") {
			t.Fatalf("the agent is %s: %s; want FAILED because of both children", r.Status, r.Error)
		}
	})
	t.Run("a_step", func(t *testing.T) {
		s := newStage(t)
		s.handlers(s.w)
		runs := 0
		agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
			runs++
			if again, _ := a.Restore(new(int)); !again {
				if err := a.Checkpoint(1); err != nil {
					return "", err
				}
			}
			large := echo(a, strings.Repeat("x", 2<<20))
			if _, err := charge(s, a, func(context.Context) (int, error) { return 1, nil }); err != nil {
				return "", fmt.Errorf("the step of run %d: %w", runs, err)
			}
			if runs == 1 {
				return "", errBoom
			}
			if _, err := agentwait.Await(a, large); !errors.Is(err, refusal.ErrInvalid) {
				return "", fmt.Errorf("the wait of run %d: %w", runs, err)
			}
			return agentwait.Await(a, echo(a, "done"))
		})
		r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "agent", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
		if err != nil {
			t.Fatal(err)
		}
		s.drain()
		s.completed(r.ID, `"done"`)
		if runs != 3 || s.counted != 1 {
			t.Fatalf("%d runs, and the effect happened %d times: want 3, and once", runs, s.counted)
		}
	})
}

func TestADivergedReplayNamesTheRefusedWait(t *testing.T) {
	for name, c := range map[string]struct {
		first func(a *agent) error
		says  string
	}{
		"wait":   {func(a *agent) error { _, err := agentwait.Await(a, agentwait.Child[string](a, "x")); return err }, "a wait for all of 1 (x), which was refused"},
		"cancel": {func(a *agent) error { unshared(a, "x"); _, err := agentwait.Cancel(a, "", echo(a, "y")); return err }, "a call of Cancel, which was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			runs := 0
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				if runs++; runs == 1 {
					c.first(a)
				} else {
					a.Now()
				}
				return agentwait.Await(a, agentwait.Schedule[string](a, "z", queue.Task{Kind: "echo", ID: "z"}))
			})
			id := s.enqueue("agent", "")
			s.drain()
			if text := s.diverged(id); !strings.Contains(text, "was "+c.says) {
				t.Fatalf("the agent is given back for %q, want the text %q", text, "was "+c.says)
			}
		})
	}
}

// The first call that uses an invalid child returns its error.
func TestNoChildIsLostSilently(t *testing.T) {
	type of = func(a *agent) error
	lost := func(a *agent) {
		agentwait.Schedule[string](a, make(chan int), queue.Task{Kind: "echo"})
		agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", ID: "7"})
	}
	unnamed := func(a *agent) *agentwait.Future[string] {
		return agentwait.Schedule[string](a, make(chan int), queue.Task{Kind: "echo"})
	}
	for name, c := range map[string]struct {
		do   of
		says []string // the error of the call
		ends []string // the error of the agent; none: it completes
	}{
		"with Start": {func(a *agent) error { lost(a); return a.Start() }, []string{"child A.1: ", "as JSON", "child A.7: ", "is a number"}, nil},
		"with Checkpoint": {func(a *agent) error { lost(a); unshared(a, "x"); return a.Checkpoint(1) },
			[]string{"child A.1: ", "child A.7: ", "child A.x: budget"}, nil},
		"with a wait for them": {func(a *agent) error { _, err := agentwait.JoinAll(a, unnamed(a), unnamed(a)); return err }, []string{"member 0: ", "member 1: ", "as JSON"}, nil},
		"with Cancel":          {func(a *agent) error { _, err := agentwait.Cancel(a, "", unnamed(a)); return err }, []string{"task 0: ", "as JSON"}, nil},
		"with the agent's end": {func(a *agent) error { lost(a); return nil }, nil, []string{"children could not be scheduled: A.1 (echo): cannot encode", ", A.7 (echo): invalid argument"}},
		"all refused children": {func(a *agent) error {
			unshared(a, "one")
			agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", ID: "two", Priority: 9})
			unshared(a, "three")
			unnamed(a)
			return a.Start()
		}, []string{"child A.one: budget", "child A.two: priority", "child A.three: budget", "child A.1: "}, nil},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				good := agentwait.Schedule[string](a, "fine", queue.Task{Kind: "echo", ID: "good"})
				err := c.do(a)
				if len(c.says) > 0 && err == nil {
					return "", errors.New("the call returned no error")
				}
				for _, words := range c.says {
					if !strings.Contains(strings.ReplaceAll(err.Error(), a.ID(), "A"), words) {
						t.Errorf("the error %v does not have %q", err, words)
					}
				}
				if len(c.says) > 0 {
					if err := a.Start(); err != nil {
						t.Errorf("the error was returned a second time: %v", err)
					}
				}
				return agentwait.Await(a, good)
			})
			id := s.enqueue("agent", "")
			s.drain()
			if len(c.ends) == 0 {
				s.completed(id, `"fine"`)
				return
			}
			r := s.get(id)
			missing := slices.DeleteFunc(c.ends, func(words string) bool { return strings.Contains(strings.ReplaceAll(r.Error, id, "A"), words) })
			if r.Status != queue.Failed || len(missing) > 0 {
				t.Fatalf("the agent is %s, and its error does not have %q: %s", r.Status, missing, r.Error)
			}
		})
	}
}
