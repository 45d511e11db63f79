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
)

// A child that a wait does not need continues until its agent ends.
func TestAChildThatIsNotNeededEndsWithItsAgent(t *testing.T) {
	for name, wait := range map[string]func(a *agent, open, done *agentwait.Future[string]) error{
		"SelectOK": func(a *agent, open, done *agentwait.Future[string]) error {
			_, err := agentwait.SelectOK(a, open, done)
			return err
		},
		"Select with KeepLosers": func(a *agent, open, done *agentwait.Future[string]) error {
			_, err := agentwait.Select(a.With(agentwait.Wait{Losers: agentwait.KeepLosers}), open, done)
			return err
		},
		"JoinN": func(a *agent, open, done *agentwait.Future[string]) error {
			_, err := agentwait.JoinN(a, 1, open, done)
			return err
		},
		"Start": func(a *agent, _, done *agentwait.Future[string]) error {
			_, err := agentwait.Await(a, done)
			return err
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				open, done := agentwait.Promise[string](a, "open", 0), echo(a, "x")
				if err := wait(a, open, done); err != nil {
					return "", err
				}
				if r := s.get(open.ID()); r.Status != queue.Pending {
					t.Errorf("before the end of the agent the child is %s, want PENDING", r.Status)
				}
				return "done", nil
			})
			id := s.enqueue("agent", "")
			s.drain()
			s.completed(id, `"done"`)
			s.advance(time.Millisecond)
			if r := s.get(id + ".open"); r.Status != queue.Cancelled || r.Error != "Owner ended" {
				t.Errorf("after the end of the agent the child is %s: %s; want CANCELLED: Owner ended", r.Status, r.Error)
			}
		})
	}
}

// The error of a step after the end of the agent's context is returned unchanged and is not recorded: the
// step runs again.
func TestAStepThatFailsAfterTheEndOfItsContextRunsAgain(t *testing.T) {
	s := newStage(t)
	ctx, shutdown := context.WithCancel(s.ctx)
	defer shutdown()
	runs := 0
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (int, error) {
		n, err := agentwait.Step(a, "effect", func(ctx context.Context) (int, error) {
			if runs++; runs == 1 {
				shutdown()
				<-ctx.Done()
				return 0, errBoom
			}
			return runs, nil
		})
		if runs == 1 && err != errBoom {
			t.Errorf("Step = %v, want the error of its function", err)
		}
		if _, err := agentwait.Step(a, "later", func(context.Context) (int, error) { return 0, nil }); (err == nil) != (runs == 2) {
			t.Errorf("run %d: the next step = %v", runs, err)
		}
		return n, err
	})
	id := s.enqueue("agent", "")
	if ran, err := s.w.RunOne(ctx); err != nil || ran.Report.Verb != queue.Release {
		t.Fatalf("RunOne = %+v, %v, want a release", ran, err)
	}
	s.run(1)
	s.completed(id, "2")
}

// Peek returns in a replay what it returned first, though the tasks have ended meanwhile.
func TestPeekReturnsTheSameInAReplay(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	var seen []string
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		f := echo(a, "x")
		p, err := agentwait.Peek(a, f)
		if err != nil {
			return "", err
		}
		seen = append(seen, outcomes(p.Outcomes))
		return agentwait.Await(a, f)
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"x"`)
	if got := fmt.Sprint(seen); got != "[0:PENDING:late 0:PENDING:late]" {
		t.Errorf("the runs saw %s, want PENDING twice", got)
	}
}

func TestInvalidSyncsAndWaitsAreRefused(t *testing.T) {
	synchronize := func(y agentwait.Sync) func(a *agent) error {
		return func(a *agent) error { _, err := agentwait.Synchronize(a, y, branch(a, "1")); return err }
	}
	wait := func(w agentwait.Wait) func(a *agent) error {
		return func(a *agent) error { _, err := agentwait.JoinAll(a.With(w), echo(a, "x")); return err }
	}
	for claim, c := range map[string]struct {
		do   func(a *agent) error
		says string
	}{
		"Any and M":             {synchronize(agentwait.Sync{Any: true, M: 1}), "set Any or M of a Sync, not both"},
		"a negative M":          {synchronize(agentwait.Sync{M: -1}), "M, -1, must not be negative"},
		"a negative timeout":    {synchronize(agentwait.Sync{Timeout: -time.Second}), "the timeout, -1s, must not be negative"},
		"an unknown strategy":   {synchronize(agentwait.Sync{Merge: agentwait.Merge{Strategy: "sum"}}), `strategy "sum" must be append`},
		"a reason over 1 KiB":   {wait(agentwait.Wait{Reason: strings.Repeat("x", 1025)}), "the reason of a wait has 1025 bytes, the limit is 1024"},
		"a negative MaxMembers": {wait(agentwait.Wait{MaxMembers: -1}), "MaxMembers, -1, must not be negative"},
		"more than 10,000 members": {func(a *agent) error {
			var all futures
			for n := range 10_001 {
				all = append(all, agentwait.Child[string](a, fmt.Sprint(n+1)))
			}
			_, err := agentwait.JoinAll(a, all...)
			return err
		}, "the wait has 10001 members, the limit is 10000"},
	} {
		t.Run(strings.ReplaceAll(claim, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				if err := c.do(a); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want ErrInvalid with the text %q", err, c.says)
				}
				return "", a.Start()
			})
			id := s.enqueue("agent", "")
			s.run(1)
			s.is(id, queue.Completed)
		})
	}
}

// A future of Schedule has the kind of its task. Child and Of do not know it.
func TestTheKindOfAFuture(t *testing.T) {
	s := newStage(t)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		f := echo(a, "x")
		kinds := []string{f.Kind(), agentwait.Child[string](a, "1").Kind(), agentwait.Of[string](a, f.ID()).Kind()}
		return strings.Join(kinds, ","), a.Start()
	})
	id := s.enqueue("agent", "")
	s.run(1)
	s.completed(id, `"echo,,"`)
}
