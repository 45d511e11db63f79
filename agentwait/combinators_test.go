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
	"github.com/curfew-dev/curfew/worker"
)

// cast registers the handler of the children. The payload says what happens to a child.
//
//	fail, discard   fails when it runs
//	gone            is cancelled before it runs
//	late            has a deadline of 5 s, and does not run
//	open            does not run
//	anything else   completes when it runs
func (s *stage) cast() {
	worker.Handle(s.w, "child", func(ctx context.Context, in string) (string, error) {
		switch in {
		case "fail":
			return "", errBoom
		case "discard":
			return "", worker.Discard(errBoom)
		case "gone", "late", "open":
			return "", worker.Release(time.Hour)
		}
		return in, nil
	})
}

func child(a *agent, does string) *agentwait.Future[string] {
	task := queue.Task{Kind: "child"}
	if does == "late" {
		task.Timeout = 5 * time.Second
	}
	return agentwait.Schedule[string](a, does, task)
}

// answer is what an agent got from its wait.
type answer struct {
	Value string
	Err   string
}

// play runs an agent and its children, moves the clock past their limits, and returns what the agent
// got from its wait.
func (s *stage) play(do func(a *agent) (string, error)) answer {
	s.t.Helper()
	var last answer
	agentwait.Handle(s.w, "agent", func(a *agent, _ string) (string, error) {
		v, err := do(a)
		if errors.Is(err, agentwait.ErrSuspended) {
			return "", err
		}
		last = answer{Value: v}
		if err != nil {
			last.Err = strings.ReplaceAll(err.Error(), a.ID(), "A")
		}
		return v, nil
	})
	id := s.enqueue("agent", "")
	s.drain()
	for _, c := range s.children(id) {
		if string(c.Payload) == `"gone"` && !c.Status.Ended() {
			if _, err := s.q.Cancel(s.ctx, c.ID, "not wanted"); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	for range 3 {
		s.drain()
		s.advance(6 * time.Second)
	}
	s.drain()
	s.is(id, queue.Completed)
	return last
}

// children returns the records of an agent's children without a name.
func (s *stage) children(id string) (all []*queue.Record) {
	s.t.Helper()
	for n := 1; ; n++ {
		r, err := s.q.Get(s.ctx, fmt.Sprintf("%s.%d", id, n))
		if errors.Is(err, refusal.ErrNotFound) {
			return all
		} else if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, r)
	}
}

func cs(a *agent, does string) (all futures) {
	for _, d := range strings.Fields(does) {
		all = append(all, child(a, d))
	}
	return all
}

func outcomes(all []agentwait.Outcome[string]) string {
	var text []string
	for _, o := range all {
		word := fmt.Sprintf("%d:%s", o.Index, o.Status)
		if o.TimedOut {
			word += ":timeout"
		}
		if o.Late {
			word += ":late"
		}
		if o.IsSuccess() {
			word += "=" + o.Value
		}
		text = append(text, word)
	}
	return strings.Join(text, " ")
}

func TestResultsOfWaits(t *testing.T) {
	type wait = agentwait.Wait
	joinAll := func(w wait, does string) func(a *agent) (string, error) {
		return func(a *agent) (string, error) {
			all, err := agentwait.JoinAll(a.With(w), cs(a, does)...)
			return strings.Join(all, " "), err
		}
	}
	selectOf := func(w wait, does string) func(a *agent) (string, error) {
		return func(a *agent) (string, error) {
			win, err := agentwait.Select(a.With(w), cs(a, does)...)
			return fmt.Sprintf("%d %s %d", win.Index, win.Value, len(win.Rest)), err
		}
	}
	selectOK := func(w wait, does string) func(a *agent) (string, error) {
		return func(a *agent) (string, error) {
			win, err := agentwait.SelectOK(a.With(w), cs(a, does)...)
			return fmt.Sprintf("%d %s %d", win.Index, win.Value, len(win.Rest)), err
		}
	}
	joinN := func(w wait, n int, does string) func(a *agent) (string, error) {
		return func(a *agent) (string, error) {
			all, err := agentwait.JoinN(a.With(w), n, cs(a, does)...)
			return outcomes(all), err
		}
	}
	settled := func(w wait, does string) func(a *agent) (string, error) {
		return func(a *agent) (string, error) {
			s, err := agentwait.JoinAllSettled(a.With(w), cs(a, does)...)
			if s == nil {
				return "", err
			}
			return fmt.Sprintf("%s | %d %d %d %d", outcomes(s.Outcomes), len(s.Completed), len(s.Failed), len(s.Cancelled), len(s.Pending)), err
		}
	}
	const five = 5 * time.Second
	for name, c := range map[string]struct {
		do   func(a *agent) (string, error)
		want answer
	}{
		"join all, in the order given":                 {joinAll(wait{}, "a b c"), answer{Value: "a b c"}},
		"join none":                                    {joinAll(wait{}, ""), answer{}},
		"join all, one fails":                          {joinAll(wait{}, "a fail b"), answer{Err: "Task 'child' (id=A.2) failed: boom"}},
		"join all, one is cancelled":                   {joinAll(wait{}, "a gone"), answer{Err: "result A.2: task cancelled: not wanted"}},
		"join all, one times out":                      {joinAll(wait{}, "a late"), answer{Err: "Task timed out: A.2: Task exceeded deadline"}},
		"join all, the first failure is returned":      {joinAll(wait{}, "late fail"), answer{Err: "Task 'child' (id=A.2) failed: boom"}},
		"fail fast":                                    {joinAll(wait{FailFast: true, Limit: time.Hour}, "open fail"), answer{Err: "Task 'child' (id=A.2) failed: boom"}},
		"join all with a limit":                        {joinAll(wait{Limit: five}, "a open fail"), answer{Err: "Timeout: the wait took longer than its limit: 1 completed, 1 failed, 0 cancelled, 1 pending"}},
		"join all continues at its limit":              {joinAll(wait{Limit: five, Proceed: true}, "a open"), answer{Value: "a "}},
		"join all continues on failures":               {joinAll(wait{ContinueOn: agentwait.OnError}, "a fail"), answer{Value: "a "}},
		"join all continues on timeouts":               {joinAll(wait{ContinueOn: agentwait.OnTimeout}, "a late"), answer{Value: "a "}},
		"join all does not continue on another ending": {joinAll(wait{ContinueOn: agentwait.OnTimeout}, "a fail"), answer{Err: "Task 'child' (id=A.2) failed: boom"}},
		"join all continues on discarded tasks":        {joinAll(wait{ContinueOn: agentwait.OnFailed}, "a discard"), answer{Value: "a "}},
		"join all skips cancelled ones":                {joinAll(wait{SkipCancelled: true}, "a gone b"), answer{Value: "a  b"}},
		"select the first":                             {selectOf(wait{}, "open b c"), answer{Value: "1 b 2"}},
		"select one that fails":                        {selectOf(wait{}, "fail open"), answer{Value: "0  1", Err: "Task 'child' (id=A.1) failed: boom"}},
		"select one that times out":                    {selectOf(wait{}, "open late"), answer{Value: "1  1", Err: "Task timed out: A.2: Task exceeded deadline"}},
		"select one that is cancelled":                 {selectOf(wait{}, "open gone"), answer{Value: "1  1", Err: "result A.2: task cancelled: not wanted"}},
		"select of none":                               {selectOf(wait{}, ""), answer{Value: "0  0", Err: "invalid argument: select requires at least one future"}},
		"select with a limit":                          {selectOf(wait{Limit: five}, "open open"), answer{Value: "0  0", Err: "Timeout: the wait took longer than its limit: 0 completed, 0 failed, 0 cancelled, 2 pending"}},
		"select ok skips failures":                     {selectOK(wait{}, "fail discard c open"), answer{Value: "2 c 3"}},
		"select ok, all fail":                          {selectOK(wait{}, "fail late gone"), answer{Value: "0  0", Err: "All tasks failed: Task 'child' (id=A.1) failed: boom"}},
		"select ok, the first failure is returned":     {selectOK(wait{}, "late fail"), answer{Value: "0  0", Err: "All tasks failed: Task 'child' (id=A.2) failed: boom"}},
		"select ok, all are cancelled":                 {selectOK(wait{}, "gone gone"), answer{Value: "0  0", Err: "All tasks failed: result A.1: task cancelled: not wanted"}},
		"select ok of none":                            {selectOK(wait{}, ""), answer{Value: "0  0", Err: "invalid argument: select_ok requires at least one future"}},
		"join 2":                                       {joinN(wait{}, 2, "open fail c d"), answer{Value: "2:COMPLETED=c 3:COMPLETED=d"}},
		"join 2 of too few":                            {joinN(wait{}, 2, "open fail gone"), answer{Err: "2 tasks must complete, and at most 1 can: Task 'child' (id=A.2) failed: boom"}},
		"join 0":                                       {joinN(wait{}, 0, "open"), answer{}},
		"join more than there are":                     {joinN(wait{}, 3, "a b"), answer{Err: "invalid argument: cannot wait for 3 of 2 different tasks: n must be 0 to 2"}},
		"settled":                                      {settled(wait{}, "a fail gone late discard"), answer{Value: "0:COMPLETED=a 1:FAILED 2:CANCELLED 3:FAILED:timeout 4:FAILED | 1 3 1 0"}},
		"settled none":                                 {settled(wait{}, ""), answer{Value: " | 0 0 0 0"}},
		"best effort":                                  {settled(wait{Limit: five, Proceed: true}, "a fail open"), answer{Value: "0:COMPLETED=a 1:FAILED 2:CANCELLED:late | 1 1 1 0"}},
		"settled, pending tasks continue":              {settled(wait{Limit: five, Proceed: true, KeepPending: true}, "a open"), answer{Value: "0:COMPLETED=a 1:PENDING:late | 1 0 0 1"}},
		"settled with a limit":                         {settled(wait{Limit: five}, "a open"), answer{Value: "0:COMPLETED=a 1:CANCELLED:late | 1 0 1 0", Err: "Timeout: the wait took longer than its limit: 1 completed, 0 failed, 0 cancelled, 1 pending"}},
		"a limit from the first end":                   {settled(wait{Limit: five, FromFirst: true, Proceed: true}, "a open"), answer{Value: "0:COMPLETED=a 1:CANCELLED:late | 1 0 1 0"}},
		"a deadline at the limit counts first":         {settled(wait{Limit: five, Proceed: true}, "late a"), answer{Value: "0:FAILED:timeout 1:COMPLETED=a | 1 1 0 0"}},
		"a negative limit":                             {settled(wait{Limit: -1}, "a"), answer{Err: "invalid argument: the limit of a wait, -1ns, must not be negative"}},
		"a limit under 1 ms":                           {settled(wait{Limit: 1}, "a"), answer{Err: "invalid argument: the limit of a wait, 1ns, must be at least 1ms"}},
		"two limits":                                   {settled(wait{Limit: five, Computed: true}, "a"), answer{Err: "invalid argument: set Limit or Computed of a wait, not both"}},
		"FromFirst without a limit":                    {settled(wait{FromFirst: true}, "a"), answer{Err: "invalid argument: FromFirst needs a Limit, or Computed"}},
		"an unknown value of Losers":                   {settled(wait{Losers: "eat"}, "a"), answer{Err: `invalid argument: Losers, "eat", must be CancelLosers or KeepLosers`}},
		"more members than MaxMembers":                 {settled(wait{MaxMembers: 2}, "a b c"), answer{Err: "invalid argument: the wait has 3 members, the limit is 2: wait for groups of them, or raise Wait.MaxMembers"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			do := c.do
			got := s.play(func(a *agent) (string, error) {
				v, err := do(a)
				if err != nil && !errors.Is(err, agentwait.ErrSuspended) {
					if startErr := a.Start(); startErr != nil { // creates the children that a refused wait left
						t.Error(startErr)
					}
				}
				return v, err
			})
			if got != c.want {
				t.Fatalf("the agent got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

func TestErrorsOfAWaitCanBeDistinguished(t *testing.T) {
	for name, c := range map[string]struct {
		does string
		is   func(error) bool
	}{
		"timeout":   {"late", func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"cancelled": {"gone", func(err error) bool { return errors.Is(err, agentwait.ErrTaskCancelled) }},
		"failed": {"a fail", func(err error) bool {
			var failed *queue.TaskFailedError
			return errors.As(err, &failed) && failed.Index == 1 && failed.Kind == "child"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			s.play(func(a *agent) (string, error) {
				_, err := agentwait.JoinAll(a, cs(a, c.does)...)
				if !errors.Is(err, agentwait.ErrSuspended) && !c.is(err) {
					t.Errorf("the error of the wait is %v", err)
				}
				return "", err
			})
		})
	}
}
