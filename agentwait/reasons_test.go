package agentwait_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
)

// The error of a wait wraps the error of a task.
func TestErrorsOfAWaitWrapTheErrorOfATask(t *testing.T) {
	skip := agentwait.Wait{SkipCancelled: true}
	for name, c := range map[string]struct {
		do func(a *agent) error
		is func(err error) bool
	}{
		"an impossible wait wraps the first failure": {
			func(a *agent) error { _, err := agentwait.JoinN(a, 2, cs(a, "gone fail")...); return err },
			func(err error) bool {
				var never *agentwait.WaitImpossibleError
				var failed *queue.TaskFailedError
				return errors.As(err, &never) && never.Need == 2 && never.Possible == 1 &&
					errors.As(err, &failed) && failed.Index == 1
			}},
		"all are cancelled and skipped": {
			func(a *agent) error { _, err := agentwait.SelectOK(a.With(skip), cs(a, "gone gone")...); return err },
			func(err error) bool {
				var all *agentwait.AllTasksFailedError
				return errors.As(err, &all) && len(all.All) == 2 && errors.Is(all.First, agentwait.ErrTaskCancelled)
			}},
		"a failure, and a cancelled task that is skipped": {
			func(a *agent) error { _, err := agentwait.SelectOK(a.With(skip), cs(a, "gone fail")...); return err },
			func(err error) bool {
				var all *agentwait.AllTasksFailedError
				var failed *queue.TaskFailedError
				return errors.As(err, &all) && len(all.All) == 1 && errors.As(all.First, &failed)
			}},
		"a task that is given twice fails once": {
			func(a *agent) error { f := child(a, "fail"); _, err := agentwait.SelectOK(a, f, f); return err },
			func(err error) bool {
				var all *agentwait.AllTasksFailedError
				return errors.As(err, &all) && len(all.All) == 1
			}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.cast()
			s.play(func(a *agent) (string, error) {
				err := c.do(a)
				if !errors.Is(err, agentwait.ErrSuspended) && !c.is(err) {
					t.Errorf("%T: %v", err, err)
				}
				return "", err
			})
		})
	}
}

// A child of another agent can have the same name as a child of this agent. Value does not confuse them.
func TestValueOfAnotherAgentsChildIsRefused(t *testing.T) {
	s := newStage(t)
	s.cast()
	var theirs *agentwait.Future[string]
	agentwait.Handle(s.w, "other", func(a *agent, _ string) (string, error) {
		theirs = child(a, "theirs")
		return "", a.Start()
	})
	s.enqueue("other", "")
	s.run(1)
	got := s.play(func(a *agent) (string, error) {
		mine := child(a, "mine")
		if _, err := agentwait.Await(a, mine); err != nil {
			return "", err
		}
		results := ""
		for _, f := range (futures{theirs, agentwait.Of[string](a, theirs.ID()), agentwait.Of[string](a, mine.ID()+".1")}) {
			v, err := agentwait.Value(a, f)
			results += fmt.Sprint(v, errors.Is(err, agentwait.ErrNotOwner), " ")
		}
		v, err := agentwait.Value(a, mine)
		return results + v, err
	})
	if want := (answer{Value: "true true true mine"}); got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
}
