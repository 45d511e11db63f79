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
	"github.com/curfew-dev/curfew/internal/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// slowly has a child of the kind end after the limit of its wait, and before a reaper has
// come to that.
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

func TestListsGoByWhatMembersHaveComeTo(t *testing.T) {
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
		want told
	}{
		"by their status, and late is said apart": {func(a *agent) (string, error) {
			s, err := settled(a, best)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s | %s | %s | %s", outcomes(s.Completed), outcomes(s.Failed), outcomes(s.Cancelled), outcomes(s.Pending)), nil
		}, told{Value: "0:COMPLETED=x 2:COMPLETED:late=late | 3:FAILED:late | 1:CANCELLED:late | "}},
		"failed or cancelled are those two lists": {func(a *agent) (string, error) {
			s, err := settled(a, best)
			if err != nil {
				return "", err
			}
			return outcomes(s.FailedOrCancelled()), nil
		}, told{Value: "1:CANCELLED:late 3:FAILED:late"}},
		"and nothing that goes on": {func(a *agent) (string, error) {
			s, err := settled(a, keep)
			if err != nil {
				return "", err
			}
			return outcomes(s.FailedOrCancelled()) + "| " + outcomes(s.Pending), nil
		}, told{Value: "| 1:PENDING:late 2:PENDING:late 3:PENDING:late"}},
		"who skips cancelled ones is told of a late failure": {func(a *agent) (string, error) {
			s, err := settled(a, best)
			if err != nil {
				return "", err
			}
			_, err = s.SkipCancelled()
			return "", err
		}, told{Err: "Task 'child' (id=A.4) failed: boom"}},
		"the error of the wait is of its limit": {func(a *agent) (string, error) {
			_, err := settled(a, strict)
			var late *agentwait.WaitTimeoutError
			if !errors.As(err, &late) {
				return "", err
			}
			return fmt.Sprint(late.Completed, late.Failed, late.Cancelled, late.Pending), nil
		}, told{Value: "[0] [] [] [1 2 3]"}},
		"late results are merged, and the last to come wins": {func(a *agent) (string, error) {
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
		}, told{Value: `["two","one","x"]"two"`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			s.slowly()
			got := s.play(c.do)
			got.Err = strings.Replace(got.Err, "'slowly'", "'child'", 1)
			if got != c.want {
				t.Fatalf("the agent made of it\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

// A loser that cleans up reads as what it will be, to the run that sees it and to its
// replay, which comes after its end.
func TestALoserReadsTheSameBeforeItsEndAndAfter(t *testing.T) {
	for name, c := range map[string]struct {
		cancel bool // somebody else had, and gave no reason
		want   string
	}{
		"of a wait":             {false, "result A.1: task cancelled: No longer needed"},
		"of who gave no reason": {true, "result A.1: task cancelled: Task cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.handlers(s.w)
			var said []string
			agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
				slow := agentwait.Schedule[string](a, "s", queue.Task{Kind: "slow", CancelGrace: time.Minute})
				x, err := agentwait.JoinNSettled(a.With(agentwait.Wait{Losers: agentwait.CancelLosers}), 1, slow, echo(a, "q"))
				if err != nil {
					return "", err
				}
				_, err = agentwait.Value(a, slow)
				told := fmt.Sprint(outcomes(x.Cancelled), "; ", x.Outcomes[0].Err, "; ", err)
				said = append(said, strings.ReplaceAll(told, a.ID(), "A"))
				return agentwait.Await(a, echo(a, told)) // a replay must say it again
			})
			worker.Handle(s.w, "slow", func(ctx context.Context, _ string) (string, error) {
				if c.cancel {
					if _, err := s.q.Cancel(s.ctx, worker.Info(ctx).ID, ""); err != nil {
						t.Error(err)
					}
				}
				s.run(2) // while this one runs, the other child, and the agent
				return "too late", nil
			})
			id := s.enqueue("agent", "")
			s.run(2)
			s.drain()
			s.is(id, queue.Completed)
			want := "0:CANCELLED:late; " + c.want + "; " + c.want
			if len(said) != 2 || said[0] != want || said[1] != want {
				t.Fatalf("the runs were told\n%s\nwant each\n%s", strings.Join(said, "\n"), want)
			}
		})
	}
}
