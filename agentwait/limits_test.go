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

// A wait with Proceed that reaches its limit continues only if a member has completed.
func TestProceedNeedsAMemberThatCompleted(t *testing.T) {
	proceed := agentwait.Wait{Limit: 5 * time.Second, Proceed: true}
	excused := proceed
	excused.ContinueOn = agentwait.OnError
	nothing := func(counts string) answer {
		return answer{Err: "Timeout: No siblings completed before timeout: " + counts}
	}
	for name, c := range map[string]struct {
		do   func(a *agent) (string, error)
		want answer
	}{
		"await": {func(a *agent) (string, error) { return agentwait.Await(a.With(proceed), child(a, "open")) },
			nothing("0 completed, 0 failed, 0 cancelled, 1 pending")},
		"run": {func(a *agent) (string, error) {
			return agentwait.Run[string](a.With(proceed), "open", queue.Task{Kind: "child"})
		}, nothing("0 completed, 0 failed, 0 cancelled, 1 pending")},
		"join all": {func(a *agent) (string, error) {
			return joined(agentwait.JoinAll(a.With(proceed), cs(a, "open fail")...))
		},
			nothing("0 completed, 1 failed, 0 cancelled, 1 pending")},
		"join all, one completed": {func(a *agent) (string, error) { return joined(agentwait.JoinAll(a.With(proceed), cs(a, "open x")...)) },
			answer{Value: " x"}},
		"join all, one is excused and one completed": {func(a *agent) (string, error) {
			return joined(agentwait.JoinAll(a.With(excused), cs(a, "open fail x")...))
		}, answer{Value: "  x"}},
		"await all": {func(a *agent) (string, error) { return "", agentwait.AwaitAll(a.With(proceed), child(a, "open")) },
			nothing("0 completed, 0 failed, 0 cancelled, 1 pending")},
		"join 2": {func(a *agent) (string, error) {
			done, err := agentwait.JoinN(a.With(proceed), 2, cs(a, "open open fail")...)
			return outcomes(done), err
		}, nothing("0 completed, 1 failed, 0 cancelled, 2 pending")},
		"join 2, one completed": {func(a *agent) (string, error) {
			done, err := agentwait.JoinN(a.With(proceed), 2, cs(a, "open x")...)
			return outcomes(done), err
		}, answer{Value: "1:COMPLETED=x"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			got := s.play(c.do)
			if got != c.want {
				t.Fatalf("the agent got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

func joined(all []string, err error) (string, error) { return strings.Join(all, " "), err }

// An invalid wait is refused without tasks too. With Clamp an n that is too large means all members.
func TestWaitsForNoTasksAndForMoreThanThereAre(t *testing.T) {
	clamp := agentwait.Wait{Clamp: true}
	for name, c := range map[string]struct {
		do   func(a *agent) (string, error)
		want answer
	}{
		"3 settled of none": {func(a *agent) (string, error) { _, err := agentwait.JoinNSettled[string](a, 3); return "", err },
			answer{Err: "invalid argument: cannot wait for 3 of 0 different tasks: n must be 0 to 0"}},
		"3 settled of none, clamped": {func(a *agent) (string, error) {
			s, err := agentwait.JoinNSettled[string](a.With(clamp), 3)
			return fmt.Sprint(len(s.Outcomes)), err
		}, answer{Value: "0"}},
		"join none with a negative limit": {func(a *agent) (string, error) {
			return joined(agentwait.JoinAll[string](a.With(agentwait.Wait{Limit: -1})))
		}, answer{Err: "invalid argument: the limit of a wait, -1ns, must not be negative"}},
		"await none with an unknown value of Losers": {func(a *agent) (string, error) {
			return "", agentwait.AwaitAll(a.With(agentwait.Wait{Losers: "eat"}))
		}, answer{Err: `invalid argument: Losers, "eat", must be CancelLosers or KeepLosers`}},
		"await none": {func(a *agent) (string, error) { return "", agentwait.AwaitAll(a) }, answer{}},
		"3 of 2, clamped": {func(a *agent) (string, error) {
			done, err := agentwait.JoinN(a.With(clamp), 3, cs(a, "x y")...)
			return outcomes(done), err
		}, answer{Value: "0:COMPLETED=x 1:COMPLETED=y"}},
		"3 of 2 and one fails, clamped": {func(a *agent) (string, error) {
			done, err := agentwait.JoinN(a.With(clamp), 3, cs(a, "x fail")...)
			return outcomes(done), err
		}, answer{Err: "2 tasks must complete, and at most 1 can: Task 'child' (id=A.2) failed: boom", Value: "0:COMPLETED=x"}},
		"3 of one task given three times, clamped": {func(a *agent) (string, error) {
			f := child(a, "x")
			done, err := agentwait.JoinN(a.With(clamp), 3, f, f, f)
			return outcomes(done), err
		}, answer{Value: "0:COMPLETED=x"}},
		"3 settled of 2, clamped": {func(a *agent) (string, error) {
			s, err := agentwait.JoinNSettled(a.With(clamp), 3, cs(a, "x fail")...)
			if err != nil {
				return "", err
			}
			return outcomes(s.Outcomes), nil
		}, answer{Value: "0:COMPLETED=x 1:FAILED"}},
		"1 of 2, with Clamp": {func(a *agent) (string, error) {
			done, err := agentwait.JoinN(a.With(clamp), 1, cs(a, "open y")...)
			return outcomes(done), err
		}, answer{Value: "1:COMPLETED=y"}},
		"a negative n is not clamped": {func(a *agent) (string, error) {
			_, err := agentwait.JoinN[string](a.With(clamp), -1)
			return "", err
		}, answer{Err: "invalid argument: cannot wait for -1 of 0 different tasks: n must be 0 to 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			got := s.play(func(a *agent) (string, error) {
				v, err := c.do(a)
				if c.want.Err != "" && strings.HasPrefix(c.want.Err, "invalid") && !errors.Is(err, refusal.ErrInvalid) {
					t.Errorf("%v is not ErrInvalid", err)
				}
				return v, err
			})
			if got != c.want {
				t.Fatalf("the agent got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}
