package agentwait_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Invalid members are refused, and the error says what to do.
func TestInvalidMembersAreRefused(t *testing.T) {
	settle := func(a *agent, f ...*agentwait.Future[string]) error {
		_, err := agentwait.JoinAllSettled(a, f...)
		return err
	}
	for name, c := range map[string]struct {
		do   func(a *agent) error
		says string
	}{
		"a signal with Within": {func(a *agent) error {
			return settle(a, echo(a, "x"), agentwait.Signal[string](a, "go").Within(time.Second))
		}, "member 1: invalid argument: a signal cannot have Within, since no wait cancels a signal: use Wait.Limit"},
		"a task with and without a limit": {func(a *agent) error {
			f := echo(a, "x")
			return settle(a, f, f.Within(time.Second))
		}, "member 1: invalid argument: A.1 is also member 0, with another Within or ContinueOn"},
		"a task with and without ContinueOn": {func(a *agent) error {
			f := echo(a, "x")
			return settle(a, f.ContinueOn(agentwait.OnError), f)
		}, "use the same in each place"},
		"nil":           {func(a *agent) error { return settle(a, echo(a, "x"), nil) }, "member 1: invalid argument: the future is nil or empty"},
		"a zero future": {func(a *agent) error { return settle(a, &agentwait.Future[string]{}) }, "member 0: invalid argument: the future is nil or empty"},
		"nil of any type": {func(a *agent) error { return agentwait.AwaitAll(a, nil, echo(a, "x")) },
			"member 0: invalid argument: the future is nil or empty"},
		"nil to cancel": {func(a *agent) error { _, err := agentwait.Cancel[string](a, "", nil); return err },
			"task 0: invalid argument: the future is nil or empty"},
		"a zero future to cancel": {func(a *agent) error { _, err := agentwait.CancelAll(a, "", &agentwait.Future[int]{}); return err },
			"task 0: invalid argument: the future is nil or empty"},
		"an invalid signal, given again": {func(a *agent) error {
			if err := settle(a, agentwait.Signal[string](a, "a.b")); err == nil {
				return nil
			}
			return settle(a, agentwait.Signal[string](a, "a.b"))
		}, `member 0: signal "a.b" must be`},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				err := c.do(a)
				if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(strings.ReplaceAll(err.Error(), a.ID(), "A"), c.says) {
					t.Errorf("%v, want ErrInvalid with the text %q", err, c.says)
				}
				return "", a.Start()
			})
			id := s.enqueue("agent", "")
			s.drain()
			s.is(id, queue.Completed)
		})
	}
}

func TestATaskGivenTwiceWithOnePolicyIsFine(t *testing.T) {
	s := newStage(t)
	s.handlers(s.w)
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		f := agentwait.Schedule[string](a, "x", queue.Task{Kind: "fail"}).Within(time.Second).ContinueOn(agentwait.OnError)
		_, err := agentwait.JoinAll(a, f, f.Within(time.Second))
		return "fine", err
	})
	id := s.enqueue("agent", "")
	s.drain()
	s.completed(id, `"fine"`)
}

// The stored outcome of a wait is read with its policy, so a replay must have the same policy.
func TestAnotherPolicyIsAnotherWait(t *testing.T) {
	type wait = agentwait.Wait
	for name, c := range map[string]struct {
		was, is wait
		member  agentwait.Ending // in the second run
		says    string           // "": it is the same wait
	}{
		"limits can change":                               {was: wait{Limit: time.Minute}, is: wait{Limit: time.Hour, FromFirst: true, MaxMembers: 5}},
		"an explicit default":                             {was: wait{}, is: wait{Losers: agentwait.KeepLosers}},
		"KeepPending differs":                             {was: wait{KeepPending: true}, is: wait{}, says: "(KeepPending)"},
		"Losers differs":                                  {was: wait{}, is: wait{Losers: agentwait.CancelLosers}, says: "(Losers)"},
		"ContinueOn differs":                              {was: wait{}, is: wait{ContinueOn: agentwait.OnError}, says: "(ContinueOn or SkipCancelled)"},
		"SkipCancelled differs":                           {was: wait{SkipCancelled: true}, is: wait{}, says: "(ContinueOn or SkipCancelled)"},
		"ContinueOn of a member differs":                  {was: wait{}, is: wait{}, member: agentwait.OnTimeout, says: "(ContinueOn or SkipCancelled)"},
		"ContinueOn of a member repeats that of the wait": {was: wait{ContinueOn: agentwait.OnTimeout}, is: wait{ContinueOn: agentwait.OnTimeout}, member: agentwait.OnTimeout},
		"several differences":                             {was: wait{}, is: wait{KeepPending: true, Losers: agentwait.CancelLosers}, says: "(KeepPending, Losers)"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			runs := 0
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				f, policy := echo(a, "x"), c.was
				if runs++; runs > 1 {
					f, policy = f.ContinueOn(c.member), c.is
				}
				return agentwait.Await(a.With(policy), f)
			})
			id := s.enqueue("agent", "")
			s.drain()
			if c.says == "" {
				s.completed(id, `"x"`)
				return
			}
			want := "was a wait for all of 1 (1), and is now the same wait with another policy " + c.says
			if text := s.diverged(id); !strings.Contains(text, want) {
				t.Fatalf("the agent is given back for %q, want the text %s", text, want)
			}
		})
	}
}
