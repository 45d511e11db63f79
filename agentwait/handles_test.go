package agentwait_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
)

// The error of a wait that reached its limit has the results so far, and the tasks without a result.
func TestATimeoutHasTheResultsSoFar(t *testing.T) {
	limit := agentwait.Wait{Limit: 5 * time.Second}
	for name, wait := range map[string]func(a *agent, f futures) error{
		"JoinAll":        func(a *agent, f futures) error { _, err := agentwait.JoinAll(a.With(limit), f...); return err },
		"JoinAllSettled": func(a *agent, f futures) error { _, err := agentwait.JoinAllSettled(a.With(limit), f...); return err },
		"JoinN":          func(a *agent, f futures) error { _, err := agentwait.JoinN(a.With(limit), 3, f...); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			got := s.play(func(a *agent) (string, error) {
				err := wait(a, cs(a, "x open fail y open"))
				var timeout *agentwait.TimeoutResult[string]
				var plain *agentwait.WaitTimeoutError
				if !errors.As(err, &timeout) {
					return "", err
				}
				if !errors.As(err, &plain) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v is not a *WaitTimeoutError and context.DeadlineExceeded", err)
				}
				var open []string
				for _, f := range timeout.Unfinished {
					open = append(open, strings.TrimPrefix(f.ID(), a.ID()))
				}
				return fmt.Sprint(timeout.Values, timeout.Failed, timeout.Pending, open), nil
			})
			if want := (answer{Value: "[{0 x} {3 y}] [2] [1 4] [.2 .5]"}); got != want {
				t.Fatalf("the agent got %+v, want %+v", got, want)
			}
		})
	}
}

// The results of tasks of several types are bytes.
func TestATimeoutOfTasksOfSeveralTypes(t *testing.T) {
	s := newStage(t)
	s.cast()
	got := s.play(func(a *agent) (string, error) {
		f := cs(a, "x open")
		err := agentwait.AwaitAll(a.With(agentwait.Wait{Limit: 5 * time.Second}), f[0], f[1])
		var timeout *agentwait.TimeoutResult[[]byte]
		if !errors.As(err, &timeout) {
			return "", err
		}
		return fmt.Sprintf("%s %s %v", timeout.Values[0].Value, timeout.Unfinished[0].ID()[len(a.ID()):], f[1].IsCancelled()), nil
	})
	if want := (answer{Value: `"x" .2 true`}); got != want {
		t.Fatalf("the agent got %+v, want %+v", got, want)
	}
}

// Select reports the result of cancelling each loser, including losers that had already ended.
func TestSelectReturnsTheResultOfEachCancel(t *testing.T) {
	s := newStage(t)
	s.cast()
	got := s.play(func(a *agent) (string, error) {
		f := cs(a, "x y fail open gone")
		if _, err := agentwait.Cancel(a, "gone", f[4]); err != nil {
			return "", err
		}
		if _, err := agentwait.JoinAllSettled(a, f[:3]...); err != nil {
			return "", err
		}
		w, err := agentwait.Select(a, append(slices.Clone(f), f[3])...)
		if err != nil {
			return "", err
		}
		kept, err := agentwait.Select(a.With(agentwait.Wait{Losers: agentwait.KeepLosers}), f...)
		if kept.Attempts != nil {
			t.Errorf("with KeepLosers Attempts is %+v, want nil", kept.Attempts)
		}
		var lines []string
		for _, c := range w.Attempts {
			if c.Err != nil || c.ID != f[c.Index].ID() {
				t.Errorf("the attempt %+v has an error, or the id of another task", c)
			}
			lines = append(lines, fmt.Sprintf("%d completed %v=%q failed %v cancelled %v, before %v: %q", c.Index, c.AlreadyCompleted, c.Value,
				c.AlreadyFailed, c.Cancelled, c.AlreadyCancelled, c.Error))
		}
		return strings.Join(lines, "\n"), err
	})
	want := answer{Value: `1 completed true="y" failed false cancelled false, before false: ""
2 completed false="" failed true cancelled false, before false: "boom"
3 completed false="" failed false cancelled true, before false: ""
4 completed false="" failed false cancelled false, before true: "gone"`}
	if got != want {
		t.Fatalf("the agent got\n%+v, want\n%+v", got, want)
	}
}

// decoded counts how often results of this type are decoded.
type decoded string

var decodes atomic.Int64

func (*decoded) UnmarshalJSON([]byte) error { decodes.Add(1); return nil }

// A result can be large, and a wait can have many losers.
func TestSelectDecodesEachResultOnce(t *testing.T) {
	s := newStage(t)
	s.cast()
	got := s.play(func(a *agent) (string, error) {
		var typed []*agentwait.Future[decoded]
		var all []agentwait.Awaitable
		for range 5 {
			f := agentwait.Schedule[decoded](a, "x", queue.Task{Kind: "child"})
			typed, all = append(typed, f), append(all, f)
		}
		if err := agentwait.AwaitAll(a, all...); err != nil {
			return "", err
		}
		before := decodes.Load()
		w, err := agentwait.Select(a, typed...)
		return fmt.Sprint(len(w.Attempts), " losers, ", decodes.Load()-before, " decoded"), err
	})
	if want := (answer{Value: "4 losers, 5 decoded"}); got != want {
		t.Fatalf("the agent got %+v, want %+v", got, want)
	}
}

// State, IsDone, IsCancelled and Index of a future use what waits and cancels of this run have reported.
// A replay returns the same.
func TestAFutureHasAStateAndAnIndex(t *testing.T) {
	s := newStage(t)
	s.cast()
	var runs []string
	got := s.play(func(a *agent) (string, error) {
		f := append(cs(a, "x fail open open"), agentwait.Schedule[string](a, "x", queue.Task{Kind: "child", ID: "named"}))
		states := func() string {
			var all []string
			for _, h := range f {
				all = append(all, fmt.Sprintf("%d:%v:%v:%v", h.Index(), h.State(), h.IsDone(), h.IsCancelled()))
			}
			return strings.Join(all, " ")
		}
		before := states()
		if _, err := agentwait.Cancel(a, "", f[3]); err != nil {
			return "", err
		}
		if _, err := agentwait.JoinAllSettled(a.With(agentwait.Wait{Limit: time.Second, KeepPending: true, Proceed: true}), f[:3]...); err != nil {
			return "", err
		}
		runs = append(runs, before+"; "+states())
		return runs[len(runs)-1], agentwait.Sleep(a, time.Second)
	})
	want := "0:pending:false:false 1:pending:false:false 2:pending:false:false 3:pending:false:false -1:pending:false:false; " +
		"0:completed:true:false 1:failed:true:false 2:pending:false:false 3:cancelled:true:true -1:pending:false:false"
	if got.Err != "" || len(runs) != 2 || runs[0] != want || runs[1] != want {
		t.Fatalf("the runs had\n%s\nand %+v, want twice\n%s", strings.Join(runs, "\n"), got, want)
	}
}
