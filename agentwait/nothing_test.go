package agentwait_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
)

// combinators has a function for each wait that a policy adjusts. Each waits for the same members.
var combinators = map[string]func(on agentwait.Waiter, f futures) (string, error){
	"JoinAll": func(on agentwait.Waiter, f futures) (string, error) { return joined(agentwait.JoinAll(on, f...)) },
	"JoinN": func(on agentwait.Waiter, f futures) (string, error) {
		done, err := agentwait.JoinN(on, 3, f...)
		return outcomes(done), err
	},
	"JoinAllSettled": func(on agentwait.Waiter, f futures) (string, error) {
		return settled(agentwait.JoinAllSettled(on, f...))
	},
	"JoinNSettled": func(on agentwait.Waiter, f futures) (string, error) {
		return settled(agentwait.JoinNSettled(on, 3, f...))
	},
	"Select":   func(on agentwait.Waiter, f futures) (string, error) { return won(agentwait.Select(on, f[2:]...)) },
	"SelectOK": func(on agentwait.Waiter, f futures) (string, error) { return won(agentwait.SelectOK(on, f...)) },
	"AwaitAll": func(on agentwait.Waiter, f futures) (string, error) {
		return "", agentwait.AwaitAll(on, f[0], f[1], f[2])
	},
	"Await": func(on agentwait.Waiter, f futures) (string, error) { return agentwait.Await(on, f[2]) },
}

func settled(s *agentwait.Settled[string], err error) (string, error) {
	if s == nil {
		return "", err
	}
	return outcomes(s.Outcomes), err
}

func won(w agentwait.Winner[string], err error) (string, error) {
	return fmt.Sprint(w.Index, w.Value), err
}

// When the wait reaches its limit two members have failed or were cancelled, one is pending, and none has
// completed. The wait returns an error, with two exceptions: JoinAllSettled and JoinNSettled with Proceed, and
// SelectOK if ContinueOn excuses the failures.
func TestAWaitAtItsLimitWithNothingCompleted(t *testing.T) {
	const (
		limited    = "Timeout: the wait took longer than its limit: "
		none       = "Timeout: No siblings completed before timeout: "
		impossible = "3 tasks must complete, and at most 2 can: "

		two  = "0 completed, 2 failed, 0 cancelled, 1 pending"
		gone = "0 completed, 0 failed, 2 cancelled, 1 pending"
		one  = "0 completed, 0 failed, 0 cancelled, 1 pending"

		cancelled = "0:FAILED 1:FAILED 2:CANCELLED:late"
		goesOn    = "0:FAILED 1:FAILED 2:PENDING:late"
	)
	limit := agentwait.Wait{Limit: 5 * time.Second}
	proceed := agentwait.Wait{Limit: 5 * time.Second, Proceed: true}
	excused := agentwait.Wait{Limit: 5 * time.Second, Proceed: true, ContinueOn: agentwait.OnError}
	skipped := agentwait.Wait{Limit: 5 * time.Second, Proceed: true, SkipCancelled: true}
	kept := agentwait.Wait{Limit: 5 * time.Second, Proceed: true, ContinueOn: agentwait.OnError, KeepPending: true}
	policies := []struct {
		wait    agentwait.Wait
		members string
	}{{limit, "fail fail open"}, {proceed, "fail fail open"}, {excused, "fail fail open"}, {skipped, "gone gone open"}, {kept, "fail fail open"}}
	// The result of each function with each of these policies.
	for name, wants := range map[string][]answer{
		"JoinAll": {
			{Err: limited + two}, {Err: none + two}, {Err: none + two}, {Err: none + gone}, {Err: none + two}},
		"AwaitAll": {
			{Err: limited + two}, {Err: none + two}, {Err: none + two}, {Err: none + gone}, {Err: none + two}},
		"Await": {
			{Err: limited + one}, {Err: none + one}, {Err: none + one}, {Err: none + one}, {Err: none + one}},
		"JoinN": {
			{Err: impossible + "Task 'child' (id=A.1) failed: boom"}, {Err: impossible + "Task 'child' (id=A.1) failed: boom"},
			{"0:FAILED 1:FAILED", none + two}, {Err: impossible + "result A.1: task cancelled: not wanted"}, {"0:FAILED 1:FAILED", none + two}},
		"JoinAllSettled": {
			{cancelled, limited + two}, {Value: cancelled}, {Value: cancelled}, {Value: "0:CANCELLED 1:CANCELLED 2:CANCELLED:late"}, {Value: goesOn}},
		"JoinNSettled": {
			{cancelled, limited + two}, {Value: cancelled}, {Value: cancelled}, {Value: "0:CANCELLED 1:CANCELLED 2:CANCELLED:late"}, {Value: goesOn}},
		"Select": {
			{"0", limited + one}, {"0", limited + one}, {"0", limited + one}, {"0", limited + one}, {"0", limited + one}},
		"SelectOK": {
			{"0", limited + two}, {"0", limited + two}, {Value: "0"}, {"0", limited + gone}, {Value: "0"}},
	} {
		for i, want := range wants {
			t.Run(fmt.Sprint(name, "_", i), func(t *testing.T) {
				policy := policies[i]
				s := newStage(t)
				s.cast()
				got := s.play(func(a *agent) (string, error) { return combinators[name](a.With(policy.wait), cs(a, policy.members)) })
				if got != want {
					t.Fatalf("members %q with %+v gave\n%+v, want\n%+v", policy.members, policy.wait, got, want)
				}
			})
		}
	}
}

// A branch whose ending is excused counts as completed, and has no result to merge.
func TestASynchronizationAtItsTimeoutWithNothingCompleted(t *testing.T) {
	type future = *agentwait.Future[json.RawMessage]
	branches := func(a *agent, on agentwait.Ending) []future {
		one := func(does string) future {
			return agentwait.Schedule[json.RawMessage](a, does, queue.Task{Kind: "child"}).ContinueOn(on)
		}
		return []future{one("fail"), one("open")}
	}
	for _, c := range []struct {
		claim string
		sync  agentwait.Sync
		on    agentwait.Ending
		want  string
	}{
		{"without Proceed it is an error", agentwait.Sync{Timeout: 5 * time.Second}, 0, "Timeout: Synchronization timeout exceeded"},
		{"with Proceed it is an error too", agentwait.Sync{Timeout: 5 * time.Second, Proceed: true}, 0, "Timeout: No siblings completed before timeout"},
		{"with Proceed and an excused branch it continues", agentwait.Sync{Timeout: 5 * time.Second, Proceed: true}, agentwait.OnError, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			got := s.play(func(a *agent) (string, error) {
				b, err := agentwait.Synchronize(a, c.sync, branches(a, c.on)...)
				return string(b), err
			})
			if !strings.HasPrefix(got.Err, c.want) || c.want == "" && got.Err != "" {
				t.Fatalf("Synchronize returned %+v, want the error %q", got, c.want)
			}
		})
	}
}
