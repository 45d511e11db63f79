package agentwait_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// branch schedules a branch whose result is any bytes.
func branch(a *agent, result string) *agentwait.Future[json.RawMessage] {
	return agentwait.Schedule[json.RawMessage](a, []byte(result), queue.Task{Kind: "branch"})
}

func TestResultsOfSynchronize(t *testing.T) {
	type sync = agentwait.Sync
	const unread = "cannot decode the result of child A.%d: invalid character '<' looking for beginning of value"
	for name, c := range map[string]struct {
		do   func(a *agent) (json.RawMessage, error)
		want answer
	}{
		"a result that is not JSON is an error": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{}, branch(a, "1"), branch(a, "<"))
		}, answer{Err: fmt.Sprintf(unread, 2)}},
		"the only result is not JSON": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{Any: true}, branch(a, "<"))
		},
			answer{Err: fmt.Sprintf(unread, 1)}},
		"one of the two results needed is not JSON": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{M: 2}, branch(a, "<"), branch(a, "1"))
		}, answer{Err: fmt.Sprintf(unread, 1)}},
		"a result that is not JSON does not count as a failure": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{M: 3}, branch(a, "<"), branch(a, "fail"), branch(a, "1"))
		}, answer{Err: "3 tasks must complete, and at most 2 can: Task 'branch' (id=A.2) failed: boom"}},
		"a result that is not JSON is an error of Merge.Of": {func(a *agent) (json.RawMessage, error) {
			s, err := agentwait.JoinAllSettled(a, branch(a, "1"), branch(a, "<"))
			if err != nil {
				return nil, err
			}
			return agentwait.Merge{}.Of(s)
		}, answer{Err: fmt.Sprintf(unread, 2)}},
		"any, and the only failure is excused": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{Any: true}, branch(a, "fail").ContinueOn(agentwait.OnError))
		}, answer{}},
		"all fail, and one failure is excused": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{}, branch(a, "fail").ContinueOn(agentwait.OnError), branch(a, "fail"))
		}, answer{}},
		"all fail": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{}, branch(a, "fail"), branch(a, "fail"))
		},
			answer{Err: "All tasks failed: Task 'branch' (id=A.1) failed: boom"}},
		"any, and all fail": {func(a *agent) (json.RawMessage, error) {
			return agentwait.Synchronize(a, sync{Any: true}, branch(a, "fail"))
		},
			answer{Err: "All tasks failed: Task 'branch' (id=A.1) failed: boom"}},
		"a branch that is given twice has two places": {func(a *agent) (json.RawMessage, error) {
			f := branch(a, "1")
			return agentwait.Synchronize(a, sync{}, f, f, branch(a, "2"))
		}, answer{Value: "[1,1,2]"}},
		"a branch that is given twice has two keys": {func(a *agent) (json.RawMessage, error) {
			f := branch(a, "1")
			return agentwait.Synchronize(a, sync{Merge: agentwait.Merge{Strategy: agentwait.KeyedByBranch}}, f, branch(a, "2"), f)
		}, answer{Value: `{"0":1,"1":2,"2":1}`}},
		"a branch that is given twice fails once": {func(a *agent) (json.RawMessage, error) {
			f := branch(a, "fail")
			return agentwait.Synchronize(a, sync{M: 2}, f, f, branch(a, "1"))
		}, answer{Err: "2 tasks must complete, and at most 1 can: Task 'branch' (id=A.1) failed: boom"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			worker.Handle(s.w, "branch", func(_ context.Context, in []byte) ([]byte, error) {
				if string(in) == "fail" {
					return nil, errBoom
				}
				return in, nil
			})
			got := s.play(func(a *agent) (string, error) {
				v, err := c.do(a)
				return string(v), err
			})
			if got != c.want {
				t.Fatalf("the agent got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

// Rest of Select never has the winner, even if the winner was given several times.
func TestTheRestIsWithoutTheWinner(t *testing.T) {
	s := newStage(t)
	s.cast()
	got := s.play(func(a *agent) (string, error) {
		win, open := child(a, "x"), child(a, "open")
		w, err := agentwait.Select(a, open, win, open, agentwait.Of[string](a, win.ID()))
		rest := slices.ContainsFunc(w.Rest, func(f *agentwait.Future[string]) bool { return f.ID() == w.ID })
		return fmt.Sprint(w.Index, len(w.Rest), rest), err
	})
	if want := (answer{Value: "1 2 false"}); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
}
