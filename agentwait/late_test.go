package agentwait_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// slowly registers a handler whose child ends after the limit of its wait, and before a reaper sweeps.
func (s *stage) slowly() {
	worker.Handle(s.w, "slowly", func(_ context.Context, in string) (string, error) {
		s.now = s.now.Add(3 * time.Second)
		testclock.Set(s.t, s.rdb, s.q.Root(0), s.now)
		if in == "fail" {
			return "", errBoom
		}
		return in, nil
	})
}

func TestListsOfAWaitUseTheStatusOfLateMembers(t *testing.T) {
	best := agentwait.Wait{Limit: 2 * time.Second, Proceed: true}
	keep, strict := best, best
	keep.KeepPending, strict.Proceed = true, false
	members := func(a *agent) futures {
		slowly := func(what string) *agentwait.Future[string] {
			return agentwait.Schedule[string](a, what, queue.Task{Kind: "slowly"})
		}
		return append(cs(a, "x open"), slowly("late"), slowly("fail"))
	}
	settled := func(a *agent, w agentwait.Wait) (*agentwait.Settled[string], error) {
		return agentwait.JoinAllSettled(a.With(w), members(a)...)
	}
	for name, c := range map[string]struct {
		do   func(a *agent) (string, error)
		want answer
	}{
		"each list by status, with late members": {func(a *agent) (string, error) {
			s, err := settled(a, best)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s | %s | %s | %s", outcomes(s.Completed), outcomes(s.Failed), outcomes(s.Cancelled), outcomes(s.Pending)), nil
		}, answer{Value: "0:COMPLETED=x 2:COMPLETED:late=late | 3:FAILED:late | 1:CANCELLED:late | "}},
		"FailedOrCancelled has both lists": {func(a *agent) (string, error) {
			s, err := settled(a, best)
			if err != nil {
				return "", err
			}
			return outcomes(s.FailedOrCancelled()), nil
		}, answer{Value: "1:CANCELLED:late 3:FAILED:late"}},
		"FailedOrCancelled has no pending task": {func(a *agent) (string, error) {
			s, err := settled(a, keep)
			if err != nil {
				return "", err
			}
			return outcomes(s.FailedOrCancelled()) + "| " + outcomes(s.Pending), nil
		}, answer{Value: "| 1:PENDING:late 2:PENDING:late 3:PENDING:late"}},
		"SkipCancelled returns the error of a late failure": {func(a *agent) (string, error) {
			s, err := settled(a, best)
			if err != nil {
				return "", err
			}
			_, err = s.SkipCancelled()
			return "", err
		}, answer{Err: "Task 'child' (id=A.4) failed: boom"}},
		"SkipCancelled ignores pending tasks": {func(a *agent) (string, error) {
			s, err := settled(a, keep)
			if err != nil {
				return "", err
			}
			done, err := s.SkipCancelled()
			return outcomes(done), err
		}, answer{Value: "0:COMPLETED=x"}},
		"the error of the wait has the states at its limit": {func(a *agent) (string, error) {
			_, err := settled(a, strict)
			var late *agentwait.WaitTimeoutError
			if !errors.As(err, &late) {
				return "", err
			}
			return fmt.Sprint(late.Completed, late.Failed, late.Cancelled, late.Pending), nil
		}, answer{Value: "[0] [] [] [1 2 3]"}},
		"late results are merged, and last_wins uses the last that ended": {func(a *agent) (string, error) {
			late := func(what string) *agentwait.Future[json.RawMessage] {
				return agentwait.Schedule[json.RawMessage](a, what, queue.Task{Kind: "slowly"})
			}
			x := agentwait.Schedule[json.RawMessage](a, "x", queue.Task{Kind: "child"})
			one, two := late("one"), late("two")
			s, err := agentwait.JoinAllSettled(a.With(best), two, one, x)
			if err != nil {
				return "", err
			}
			list, _ := agentwait.Merge{}.Of(s)
			last, err := agentwait.Merge{Strategy: agentwait.LastWins}.Of(s)
			return string(list) + string(last), err
		}, answer{Value: `["two","one","x"]"two"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			s.slowly()
			got := s.play(c.do)
			got.Err = strings.Replace(got.Err, "'slowly'", "'child'", 1)
			if got != c.want {
				t.Fatalf("the agent got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

// A cancelled loser in its grace has the outcome that it will end with. The run that reads it before its
// end and the replay after its end get the same.
func TestALoserHasTheSameOutcomeBeforeAndAfterItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		cancel bool // another call had cancelled it, without a reason
		want   string
	}{
		"cancelled by the wait":      {false, "result A.1: task cancelled: No longer needed"},
		"cancelled without a reason": {true, "result A.1: task cancelled: Task cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			var seen []string
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				slow := agentwait.Schedule[string](a, "s", queue.Task{Kind: "slow", CancelGrace: time.Minute})
				x, err := agentwait.JoinNSettled(a.With(agentwait.Wait{Losers: agentwait.CancelLosers}), 1, slow, echo(a, "q"))
				if err != nil {
					return "", err
				}
				_, err = agentwait.Value(a, slow)
				text := fmt.Sprint(outcomes(x.Cancelled), "; ", x.Outcomes[0].Err, "; ", err)
				seen = append(seen, strings.ReplaceAll(text, a.ID(), "A"))
				return agentwait.Await(a, echo(a, text)) // a replay must have the same payload
			})
			worker.Handle(s.w, "slow", func(ctx context.Context, _ string) (string, error) {
				if c.cancel {
					if _, err := s.q.Cancel(s.ctx, worker.Info(ctx).ID, ""); err != nil {
						t.Error(err)
					}
				}
				s.run(2) // the other child and the agent, while this child runs
				return "too late", nil
			})
			id := s.enqueue("agent", "")
			s.run(2)
			s.drain()
			s.is(id, queue.Completed)
			want := "0:CANCELLED:late; " + c.want + "; " + c.want
			if len(seen) != 2 || seen[0] != want || seen[1] != want {
				t.Fatalf("the runs got\n%s\nwant each\n%s", strings.Join(seen, "\n"), want)
			}
		})
	}
}
