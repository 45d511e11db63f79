package agentwait_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// These handlers were not written with replays in mind. Each must complete.
func TestHabitsOfHandlers(t *testing.T) {
	type code = func(s *stage, a *agent) (string, error)
	runs := 0 // of the agent of the current case; the cases do not run in parallel
	for name, c := range map[string]struct {
		do   code
		want string
	}{
		"an agent continues after a failed step": {func(_ *stage, a *agent) (string, error) {
			_, err := agentwait.Step(a, "notify", func(context.Context) (int, error) { return 0, errBoom })
			v, wait := agentwait.Await(a, echo(a, "x"))
			return fmt.Sprint(err, v), wait
		}, `"boomx"`},
		"Value is called before the wait": {func(_ *stage, a *agent) (string, error) {
			f := echo(a, "x")
			if err := a.Start(); err != nil {
				return "", err
			}
			v, err := agentwait.Value(a, f)
			if err != nil {
				if v, err = agentwait.Await(a, f); err != nil {
					return "", err
				}
			}
			w, err := agentwait.Await(a, echo(a, "y"))
			return v + w, err
		}, `"xy"`},
		"a checkpoint at the top of a loop": {func(s *stage, a *agent) (string, error) {
			st := 0
			if _, err := a.Restore(&st); err != nil {
				return "", err
			}
			charged := ""
			for ; st < 2; st++ {
				if err := a.Checkpoint(st); err != nil {
					return "", err
				}
				n, err := agentwait.Step(a, "charge", func(context.Context) (int, error) { s.counted++; return s.counted, nil })
				if err != nil {
					return "", err
				}
				charged += fmt.Sprint(n)
				for _, what := range []string{"x", "y"} {
					if _, err := agentwait.Await(a, echo(a, what)); err != nil {
						return "", err
					}
				}
			}
			return fmt.Sprint(charged, s.counted), nil
		}, `"22"`},
		"a signal in a loop": {func(_ *stage, a *agent) (string, error) {
			st := 0
			if _, err := a.Restore(&st); err != nil {
				return "", err
			}
			for st < 4 {
				stop := agentwait.Signal[string](a, "stop")
				if _, err := agentwait.Select(a.With(agentwait.Wait{Losers: agentwait.KeepLosers}), stop, echo(a, "x")); err != nil {
					return "", err
				}
				st++
				if err := a.Checkpoint(st); err != nil {
					return "", err
				}
			}
			return "fine", nil
		}, `"fine"`},
		"children with a random payload are started before the wait": {func(_ *stage, a *agent) (string, error) {
			f := echo(a, fmt.Sprint(a.Rand().Uint64()))
			if err := a.Start(); err != nil {
				return "", err
			}
			if runs == 1 {
				return "", worker.Release(0) // like the death of the process
			}
			v, err := agentwait.Await(a, f)
			return fmt.Sprint(v != ""), err
		}, `"true"`},
		"1001 calls of Now": {func(_ *stage, a *agent) (string, error) {
			for range 1001 {
				a.Now()
			}
			return agentwait.Await(a, echo(a, "x"))
		}, `"x"`},
		"a result of another type": {func(_ *stage, a *agent) (string, error) {
			bad := agentwait.Schedule[int](a, "no number", queue.Task{Kind: "echo"})
			done, err := agentwait.JoinN(a, 2, bad, agentwait.Schedule[int](a, "none", queue.Task{Kind: "echo"}))
			if err == nil || err == agentwait.ErrSuspended {
				return fmt.Sprint(len(done)), err
			}
			return fmt.Sprint(len(done), strings.Contains(err.Error(), "cannot decode the result of child ")), nil
		}, `"0 true"`},
		"a step of any type": {func(_ *stage, a *agent) (string, error) {
			v, err := agentwait.Step(a, "x", func(context.Context) (any, error) { return 1, nil })
			if err != nil {
				return "", err
			}
			type1 := fmt.Sprintf("%T", v)
			_, err = agentwait.Await(a, echo(a, "x"))
			return type1, err
		}, `"float64"`},
		"an excused failure does not make a wait impossible": {func(_ *stage, a *agent) (string, error) {
			fail := func() *agentwait.Future[string] {
				return agentwait.Schedule[string](a, "a", queue.Task{Kind: "fail"})
			}
			_, err := agentwait.JoinN(a, 2, fail().ContinueOn(agentwait.OnError), fail())
			if err == nil || err == agentwait.ErrSuspended {
				return "", err
			}
			return strings.ReplaceAll(err.Error(), a.ID(), "A"), nil
		}, `"2 tasks must complete, and at most 1 can: Task 'fail' (id=A.2) failed: boom"`},
		"a step whose result is too large": {func(_ *stage, a *agent) (string, error) {
			_, err := agentwait.Step(a, "big", func(context.Context) (string, error) { return string(make([]byte, 1<<20)), nil })
			v, wait := agentwait.Await(a, echo(a, "x"))
			return fmt.Sprint(strings.Contains(err.Error(), "the limit is 1048576"), v), wait
		}, `"truex"`},
		"a refused child, and a good one": {func(_ *stage, a *agent) (string, error) {
			bad := agentwait.Schedule[string](a, "x", queue.Task{Kind: "echo", Budget: 0.5})
			good := echo(a, "good")
			if _, err := agentwait.Await(a, bad); err == nil || err == agentwait.ErrSuspended {
				return "", fmt.Errorf("the wait for a child with a budget and an owner without a deadline returned %v", err)
			}
			return agentwait.Await(a, good)
		}, `"good"`},
		"cancelled tasks are skipped, and do not count": {func(_ *stage, a *agent) (string, error) {
			gone, fine := agentwait.Promise[string](a, "gone", 0), echo(a, "x")
			if _, err := agentwait.Cancel(a, "", gone); err != nil {
				return "", err
			}
			done, err := agentwait.JoinN(a.With(agentwait.Wait{SkipCancelled: true}), 1, gone, fine)
			return outcomes(done), err
		}, `"1:COMPLETED=x"`},
		"a checkpoint of nothing": {func(_ *stage, a *agent) (string, error) {
			if was, err := a.Restore(new(string)); err != nil {
				return "", err
			} else if !was {
				if err := a.Checkpoint(nil); err != nil {
					return "", err
				}
			}
			return agentwait.Await(a, echo(a, "x"))
		}, `"x"`},
		"Cancel of a child that does not exist": {func(_ *stage, a *agent) (string, error) {
			there := agentwait.Promise[string](a, "there", 0)
			r, err := agentwait.Cancel(a, "", there, agentwait.Child[string](a, "nobody"))
			return fmt.Sprint(r[0].Cancelled, r[1].Err != nil, err != nil), nil
		}, `"true true true"`},
		"a signal with a dot": {func(_ *stage, a *agent) (string, error) {
			_, err := agentwait.Await(a, agentwait.Signal[string](a, "order.paid"))
			return fmt.Sprint(strings.Contains(err.Error(), "signal")), nil
		}, `"true"`},
		"an invalid wait creates no children": {func(s *stage, a *agent) (string, error) {
			var f futures
			for range 600 {
				f = append(f, echo(a, "x"))
			}
			_, one := agentwait.JoinN(a, 601, f...)
			_, two := agentwait.JoinAll(a.With(agentwait.Wait{MaxMembers: 500}), f...)
			children := s.get(a.ID()).Fields["children"]
			if one == nil || two == nil || children != "" {
				return "", fmt.Errorf("%v, %v, %s children", one, two, children)
			}
			return "fine", a.Start()
		}, `"fine"`},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := playStage(t)
			s.handlers(s.w)
			runs = 0
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) { runs++; return c.do(s, a) })
			id := s.enqueue("agent", "")
			s.drain()
			s.completed(id, c.want)
		})
	}
}

// An agent that the worker stops does not complete, even if its handler ignores the error and returns a
// value.
func TestAHandlerThatIgnoresAShutdownCompletesNothing(t *testing.T) {
	for name, do := range map[string]func(a *agent) error{
		"wait":    func(a *agent) error { _, err := agentwait.Await(a, echo(a, "x")); return err },
		"started": func(a *agent) error { f := echo(a, "x"); a.Start(); _, err := agentwait.Await(a, f); return err },
		"step": func(a *agent) error {
			_, err := agentwait.Step(a, "s", func(context.Context) (int, error) { return 1, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				cancel() // the worker shuts down
				<-a.Done()
				if err := do(a); err == nil {
					t.Error("a call succeeded after the end of the context")
				}
				return "fallback", nil
			})
			id := s.enqueue("agent", "")
			if ran, err := s.w.RunOne(ctx); err != nil || ran.Report.Verb != queue.Release {
				t.Fatalf("%+v, %v", ran, err)
			}
			s.is(id, queue.Pending)
		})
	}
}

// Select has cancelled the loser, which is in its grace. Cancel returns the same in each run.
func TestCancelReturnsTheSameDuringAndAfterAGrace(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	var results []string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		slow := agentwait.Schedule[string](a, "s", queue.Task{Kind: "slow", CancelGrace: time.Minute})
		if _, err := agentwait.Select(a, slow, echo(a, "q")); err != nil {
			return "", err
		}
		r, err := agentwait.Cancel(a, "bye", slow)
		if err != nil {
			return "", err
		}
		results = append(results, fmt.Sprint(r[0].Cancelled))
		return agentwait.Await(a, echo(a, "y"))
	})
	worker.Handle(s.w, "slow", func(context.Context, string) (string, error) {
		s.run(2) // the other child and the agent, while this child runs
		return "", nil
	})
	id := s.enqueue("agent", "")
	s.run(1)
	s.run(1)
	s.drain()
	s.completed(id, `"y"`)
	if got := fmt.Sprint(results); got != "[true true]" {
		t.Fatalf("Cancelled of the loser is %s, want [true true]", got)
	}
}

// If Redis gets full while a step runs, its result is still written, and the step does not run again.
func TestAFullRedisRepeatsNoStep(t *testing.T) {
	s := stageOn(t, ownRedis(t))
	charged := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (int, error) {
		return agentwait.Step(a, "charge", func(context.Context) (int, error) {
			charged++
			return charged, s.rdb.ConfigSet(a, "maxmemory", "1").Err()
		})
	})
	id := s.enqueue("agent", "")
	s.run(1)
	s.rdb.ConfigSet(s.ctx, "maxmemory", "0")
	s.completed(id, "1")
}
