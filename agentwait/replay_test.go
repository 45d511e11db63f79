package agentwait_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

func TestAReplayGetsTheSameChildrenAndAnswers(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	runs, seen := 0, map[string]int{}
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		runs++
		first, err := agentwait.Select(a.With(agentwait.Wait{Losers: agentwait.KeepLosers}), echo(a, "x"), echo(a, "y"))
		if err != nil {
			return "", err
		}
		seen[fmt.Sprint(first.Index, first.Value)]++
		both, err := agentwait.JoinAll(a, echo(a, "z"), first.Rest[0])
		if err != nil {
			return "", err
		}
		seen[strings.Join(both, "")]++
		last, err := agentwait.Await(a, echo(a, "last"))
		return first.Value + strings.Join(both, "") + last, err
	})
	id := s.enqueue("agent", "")
	if n := s.drain(); n != 8 || runs != 4 {
		t.Fatalf("%d tasks ran, the agent %d times: want 8 and 4", n, runs)
	}
	s.completed(id, `"xzylast"`)
	if seen["0x"] != 3 || seen["zy"] != 2 || len(seen) != 2 {
		t.Fatalf("the runs saw %v, want 0x three times and zy twice", seen)
	}
	if r := s.get(id); r.Fields["children"] != "4" {
		t.Fatalf("the agent had %s children, want 4", r.Fields["children"])
	}
}

func TestAStepRunsOnceAndIsRemembered(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	charged, drawn, times := 0, map[string]bool{}, map[time.Time]bool{}
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		now, n := a.Now(), a.Rand().Uint64()
		times[now] = true
		key := fmt.Sprint(n)
		receipt, err := agentwait.Step(a, "charge", func(context.Context) (string, error) {
			charged++
			return "receipt " + key, nil
		})
		if err != nil {
			return "", err
		}
		drawn[receipt+" "+key] = true
		s.now = s.now.Add(time.Second)
		if _, err := agentwait.Await(a, echo(a, "x")); err != nil {
			return "", err
		}
		return "done", nil
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"done"`)
	if charged != 1 || len(drawn) != 1 || len(times) != 1 {
		t.Fatalf("the step ran %d times, Rand gave %v, Now gave %v: want one of each", charged, drawn, times)
	}
}

func TestAStepThatFailedRunsAgain(t *testing.T) {
	s := newStage(t)
	tries := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (int, error) {
		return agentwait.Step(a, "flaky", func(context.Context) (int, error) {
			if tries++; tries == 1 {
				return 0, errBoom
			}
			return tries, nil
		})
	})
	r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: "agent", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
	if err != nil {
		t.Fatal(err)
	}
	s.run(2)
	s.completed(r.ID, "2")
}

// A process dies after the effect of a step and before its result is written. The step runs again, with
// the same key from Rand.
func TestAStepThatWasCutRunsAgainWithTheSameKey(t *testing.T) {
	s := newStage(t)
	var keys []uint64
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		key := a.Rand().Uint64()
		return agentwait.Step(a, "charge", func(context.Context) (string, error) {
			if keys = append(keys, key); len(keys) == 1 {
				return "", worker.Release(0) // like the death of the process
			}
			return "done", nil
		})
	})
	id := s.enqueue("agent", "")
	s.run(2)
	s.completed(id, `"done"`)
	if len(keys) != 2 || keys[0] != keys[1] {
		t.Fatalf("the step ran with the keys %d, want two equal keys", keys)
	}
}

func TestACheckpointIsWhereTheReplayBegins(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	type state struct {
		Round int
		Sum   string
	}
	var rounds []int
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		var st state
		if _, err := a.Restore(&st); err != nil {
			return "", err
		}
		for st.Round < 4 {
			rounds = append(rounds, st.Round)
			v, err := agentwait.Await(a, echo(a, fmt.Sprint(st.Round)))
			if err != nil {
				return "", err
			}
			st = state{st.Round + 1, st.Sum + v}
			if err := a.Checkpoint(st); err != nil {
				return "", err
			}
		}
		return st.Sum, nil
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"0123"`)
	// Each round begins twice: once to wait, and once to get the result.
	if got := fmt.Sprint(rounds); got != "[0 0 1 1 2 2 3 3]" {
		t.Fatalf("the rounds were %s, want each twice", got)
	}
}

func TestChildrenFromBeforeACheckpointAreFoundByName(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		if again, _ := a.Restore(new(string)); !again {
			agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", ID: "mine"})
			echo(a, "y")
			if err := a.Checkpoint("begun"); err != nil {
				return "", err
			}
		}
		all, err := agentwait.JoinAll(a, agentwait.Child[string](a, "mine"), agentwait.Child[string](a, "1"), echo(a, "z"))
		return strings.Join(all, ""), err
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"xyz"`)
}

func TestAReplayThatDiffersIsGivenBack(t *testing.T) {
	await := func(a *agent, f ...*agentwait.Future[string]) (string, error) {
		all, err := agentwait.JoinAll(a, f...)
		return strings.Join(all, ""), err
	}
	step := func(name string) func(a *agent, _ string) (string, error) {
		return func(a *agent, _ string) (string, error) {
			if _, err := agentwait.Step(a, name, func(context.Context) (int, error) { return 1, nil }); err != nil {
				return "", err
			}
			return await(a, echo(a, "x"))
		}
	}
	type code = func(a *agent, _ string) (string, error)
	join := func(a *agent, _ string) (string, error) { return await(a, echo(a, "x"), echo(a, "y")) }
	many := func(a *agent) (all futures) {
		for range 22 {
			all = append(all, echo(a, "x"))
		}
		return all
	}
	long := strings.Repeat("long ", 50)
	for name, c := range map[string]struct {
		was, is code
		says    []string
	}{
		"another payload": {join, func(a *agent, _ string) (string, error) { return await(a, echo(a, "x"), echo(a, "Y")) },
			[]string{`child 0-`, `.2 of kind echo in queue default with payload "\"y\""`, `.2 of kind echo in queue default with payload "\"Y\""`}},
		"another kind": {join, func(a *agent, _ string) (string, error) {
			return await(a, echo(a, "x"), agentwait.Schedule[string](a, "y", queue.Task{Kind: "fail"}))
		}, []string{"of kind echo", "of kind fail"}},
		"fewer members": {join, func(a *agent, _ string) (string, error) { return await(a, echo(a, "x")) },
			[]string{"was a wait for all of 2 (1 2)", "is now a wait for all of 1 (1)"}},
		"another mode": {join, func(a *agent, _ string) (string, error) {
			w, err := agentwait.SelectOK(a, echo(a, "x"), echo(a, "y"))
			return w.Value, err
		}, []string{"was a wait for all of 2 (1 2)", "is now a wait for any_ok of 2 (1 2)"}},
		"another step":         {step("charge"), step("refund"), []string{`was the step "charge"`, `is now the step "refund"`}},
		"a wait for a step":    {step("charge"), join, []string{`was the step "charge"`, "is now a wait for all of 2"}},
		"a step for a wait":    {join, step("charge"), []string{"was a wait for all of 2", `is now the step "charge"`}},
		"it returns too early": {join, func(*agent, string) (string, error) { return "", nil }, []string{"was a wait for all of 2", "missing: the handler returned before it"}},
		"Now for a wait":       {join, func(a *agent, _ string) (string, error) { a.Now(); return join(a, "") }, []string{"a call of Now"}},
		"Rand for a wait":      {join, func(a *agent, _ string) (string, error) { a.Rand(); return join(a, "") }, []string{"a call of Rand"}},
		"Cancel for a wait": {join, func(a *agent, _ string) (string, error) {
			_, err := agentwait.Cancel(a, "", echo(a, "x"))
			return "", err
		}, []string{"a call of Cancel"}},
		"the error is ignored": {join, func(a *agent, _ string) (string, error) { await(a, echo(a, "x")); return "fine", nil }, []string{"all of 2", "all of 1"}},
		"another queue of a child": {join, func(a *agent, _ string) (string, error) {
			return await(a, echo(a, "x"), agentwait.Schedule[string](a, "y", queue.Task{Kind: "echo", Queue: "q"}))
		}, []string{"in queue default", "in queue q"}},
		"a name instead of a number": {join, func(a *agent, _ string) (string, error) {
			return await(a, echo(a, "x"), agentwait.Schedule[string](a, "y", queue.Task{Kind: "echo", ID: "y"}))
		}, []string{"(1 2)", "(1 y)"}},
		"another end of a long payload": {
			func(a *agent, _ string) (string, error) { return await(a, echo(a, long+"x")) },
			func(a *agent, _ string) (string, error) { return await(a, echo(a, long+"y")) },
			[]string{`.1 of kind echo in queue default with payload "\"long long`, ".1 with another payload after the first 200 bytes"}},
		"one more child without a name": {join, func(a *agent, _ string) (string, error) {
			x, y := echo(a, "x"), echo(a, "y")
			echo(a, "z")
			return await(a, x, y)
		}, []string{"was no child 0-", ".3 before its wait for all of 2 (1 2), and is now child 0-"}},
		"another member after the first 20": {
			func(a *agent, _ string) (string, error) { f := many(a); return await(a, append(f[:20:20], f[21])...) },
			func(a *agent, _ string) (string, error) { f := many(a); return await(a, f[:21]...) },
			[]string{"or the same in another order, or other members after the first 20, and is now only 0-", ", and 17 more. "}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", c.was)
			id := s.enqueue("agent", "")
			s.drainBut("agent", 1)
			before := s.w
			s.w = s.another()
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", c.is)
			s.drain()
			text := s.diverged(id)
			for _, words := range append(c.says, ": call 1 of agent "+id, "give its children names") {
				if !strings.Contains(text, words) {
					t.Errorf("the reason does not have %q: %s", words, text)
				}
			}
			s.w = before // the earlier code continues
			s.advance(time.Minute)
			s.drain()
			s.is(id, queue.Completed)
		})
	}
}

// Children with names are found by their names, wherever the code schedules them between two waits.
func TestChildrenWithNamesAreMatchedByName(t *testing.T) {
	type code = func(a *agent, _ string) (string, error)
	named := func(a *agent, name string) *agentwait.Future[string] {
		return agentwait.Schedule[string](a, name, queue.Task{Kind: "echo", ID: name})
	}
	join := func(a *agent, f ...*agentwait.Future[string]) (string, error) {
		all, err := agentwait.JoinAll(a, f...)
		return strings.Join(all, " "), err
	}
	old := func(a *agent, _ string) (string, error) {
		x := named(a, "x")
		both, err := join(a, x, named(a, "y"))
		if err != nil {
			return "", err
		}
		last, err := join(a, named(a, "last"))
		return both + " " + last, err
	}
	for name, c := range map[string]struct {
		is     code
		result string
		tasks  int // that run after the change, the runs of the agent included
	}{
		"another order of the children": {func(a *agent, _ string) (string, error) {
			y := named(a, "y")
			both, err := join(a, named(a, "x"), y)
			if err != nil {
				return "", err
			}
			last, err := join(a, named(a, "last"))
			return both + " " + last, err
		}, `"x y last"`, 3},
		"another order of the members": {func(a *agent, _ string) (string, error) {
			y := named(a, "y")
			both, err := join(a, y, named(a, "x"))
			if err != nil {
				return "", err
			}
			last, err := join(a, named(a, "last"))
			return both + " " + last, err
		}, `"y x last"`, 3},
		"a child of a later wait begins earlier": {func(a *agent, _ string) (string, error) {
			last := named(a, "last")
			x := named(a, "x")
			both, err := join(a, x, named(a, "y"))
			if err != nil {
				return "", err
			}
			l, err := join(a, last)
			return both + " " + l, err
		}, `"x y last"`, 3},
		"one more child, for a later wait": {func(a *agent, _ string) (string, error) {
			more := named(a, "more")
			x := named(a, "x")
			both, err := join(a, x, named(a, "y"))
			if err != nil {
				return "", err
			}
			last, err := join(a, named(a, "last"), more)
			return both + " " + last, err
		}, `"x y last more"`, 4},
		"one more child, which no wait names": {func(a *agent, _ string) (string, error) {
			named(a, "more")
			return old(a, "")
		}, `"x y last"`, 4},
		"one more child, and the agent ends after its wait": {func(a *agent, _ string) (string, error) {
			named(a, "more")
			x := named(a, "x")
			return join(a, x, named(a, "y"))
		}, `"x y"`, 1},
		"one more child, and Start after the wait": {func(a *agent, _ string) (string, error) {
			named(a, "more")
			x := named(a, "x")
			both, err := join(a, x, named(a, "y"))
			return both, errors.Join(err, a.Start())
		}, `"x y"`, 1},
		"a child less": {func(a *agent, _ string) (string, error) {
			last, err := join(a, named(a, "x"), agentwait.Child[string](a, "y"))
			return last, err
		}, `"x y"`, 1},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", old)
			id := s.enqueue("agent", "")
			s.drainBut("agent", 1)
			s.w = s.another()
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", c.is)
			if ran := s.drain(); ran != c.tasks {
				t.Errorf("%d tasks ran after the change, want %d", ran, c.tasks)
			}
			s.completed(id, c.result)
			if strings.HasPrefix(name, "one more child") {
				s.get(id + ".more")
			}
		})
	}
}

// The result of a step and the state of a checkpoint that new code cannot decode are differences, and no errors of the task.
func TestNewTypesOfStoredValuesAreDifferences(t *testing.T) {
	type code = func(a *agent, _ string) (string, error)
	restore := func(state any) code {
		return func(a *agent, _ string) (string, error) {
			if restored, err := a.Restore(state); err != nil || !restored {
				return "", errors.Join(err, a.Checkpoint("begun"), agentwait.Sleep(a, time.Hour))
			}
			return "done", agentwait.Sleep(a, time.Hour)
		}
	}
	for name, c := range map[string]struct {
		was, is code
		says    string
	}{
		"a step": {stepOf("5"), stepOf(5), `call 1 of agent A was the step "count" with the result "\"5\"", and is now the step with a result of type int: `},
		"a checkpoint": {restore(new(string)), restore(new(int)),
			`call 0 of agent A was a Checkpoint with the state "\"begun\"", and is now a Restore into *int: `},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			agentwait.Handle(s.w, "agent", c.was)
			id := s.enqueue("agent", "")
			s.run(1)
			s.advance(time.Hour)
			before := s.w
			s.w = s.another()
			agentwait.Handle(s.w, "agent", c.is)
			s.drain()
			if text := strings.ReplaceAll(s.diverged(id), id, "A"); !strings.Contains(text, c.says) {
				t.Errorf("the reason does not have %q: %s", c.says, text)
			}
			s.w = before
			s.advance(time.Minute)
			s.drain()
			s.is(id, queue.Completed)
		})
	}
}

func stepOf[T any](v T) func(a *agent, _ string) (string, error) {
	return func(a *agent, _ string) (string, error) {
		_, err := agentwait.Step(a, "count", func(context.Context) (T, error) { return v, nil })
		return "done", errors.Join(err, agentwait.Sleep(a, time.Hour))
	}
}

// The error of a replay that differs takes one call for all children, not one for each.
func TestADivergedReplayReadsItsChildrenInOneCall(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	differs := false
	agentwait.Handle(s.w, "agent", func(a *agent, n int) (string, error) {
		all := futures{}
		for range n - 1 {
			all = append(all, echo(a, "x"))
		}
		_, err := agentwait.JoinAll(a, append(all, echo(a, fmt.Sprint(differs)))...)
		return "", err
	})
	var calls atomic.Int64
	s.rdb.AddHook(queuetest.Around{Before: func() { calls.Add(1) }})
	cost := func(children int) int64 {
		differs = false
		id := s.enqueue("agent", fmt.Sprint(children))
		s.run(1 + children)
		differs = true
		before := calls.Load()
		s.run(1)
		if text := s.diverged(id); !strings.Contains(text, `was child `+id+"."+fmt.Sprint(children)) {
			t.Fatalf("the agent is given back for %q", text)
		}
		return calls.Load() - before
	}
	if few, many := cost(2), cost(40); many > few+10 { // the worker makes calls of its own
		t.Errorf("the run makes %d calls for 2 children and %d for 40, want about the same", few, many)
	}
}

// drainBut runs ready tasks until a kind has run n times and only one task of it is ready.
func (s *stage) drainBut(kind string, n int) {
	s.t.Helper()
	for {
		ran, err := s.w.RunOne(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if ran == nil {
			return
		}
		if ran.Claim.Kind == kind {
			if n--; n < 0 {
				s.t.Fatalf("kind %s ran once too often", kind)
			}
		}
		if left, err := s.q.Stats(s.ctx); err != nil || n == 0 && left.Queues[0].Ready == 1 && left.Queues[0].Waiting == 0 {
			return
		}
	}
}

func TestAHandlerThatIgnoresErrSuspendedCompletesNothing(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	runs := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		runs++
		v, err := agentwait.Await(a, echo(a, "x"))
		if errors.Is(err, agentwait.ErrSuspended) {
			if _, err := agentwait.Await(a, echo(a, "y")); !errors.Is(err, agentwait.ErrSuspended) {
				t.Errorf("a second wait of a suspended agent: %v", err)
			}
			return "swallowed", nil
		}
		return v, err
	})
	id := s.enqueue("agent", "")
	s.run(1)
	s.is(id, queue.Waiting)
	s.drain()
	s.completed(id, `"x"`)
	if runs != 2 {
		t.Fatalf("the agent ran %d times, want 2", runs)
	}
}

// The advice to wait or to call Start is for the children that this would create.
func TestChildrenThatWereNeverStartedAreAnError(t *testing.T) {
	const unfit = `children could not be scheduled: A.7 (echo): invalid argument: name "7" is a number: numbers are for children without a name, ` +
		`A.s-x (echo): invalid argument: name "s-x" begins with s-, which is for signals: use Signal`
	bad := func(a *agent) {
		for _, name := range []string{"7", "s-x"} {
			agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", ID: name})
		}
	}
	some := func(n int) func(a *agent) {
		return func(a *agent) {
			for range n {
				echo(a, "x")
			}
		}
	}
	for name, c := range map[string]struct {
		do  func(a *agent)
		err string
	}{
		"two children":  {some(2), "children were scheduled and never awaited: A.1 (echo), A.2 (echo): wait for them, or call Start"},
		"many children": {some(7), "children were scheduled and never awaited: A.1 (echo), A.2 (echo), A.3 (echo), A.4 (echo), A.5 (echo), and 2 more: wait for them, or call Start"},
		"invalid ones":  {bad, unfit},
		"both":          {func(a *agent) { bad(a); some(1)(a) }, unfit + "\nchildren were scheduled and never awaited: A.1 (echo): wait for them, or call Start"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) { c.do(a); return "done", nil })
			id := s.enqueue("agent", "")
			s.run(1)
			if r := s.get(id); r.Status != queue.Failed || strings.ReplaceAll(r.Error, id, "A") != c.err {
				t.Fatalf("the agent is %s: %s; want FAILED: %s", r.Status, r.Error, c.err)
			}
			if _, err := s.q.Get(s.ctx, id+".1"); !errors.Is(err, refusal.ErrNotFound) {
				t.Fatalf("Get of the child = %v, want ErrNotFound", err)
			}
		})
	}
}
