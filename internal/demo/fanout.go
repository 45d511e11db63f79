package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The tasks of Fanout: some answer, and the others hang.
const (
	answers = 16
	hanging = 4
)

// Fanout runs an agent that waits for 20 tasks, of which some hang, no longer than the timeout. It returns an error unless the agent wakes
// then, with the results that are there, and the tasks that hang are cancelled.
func Fanout(ctx context.Context, s *Scene) (err error) {
	if s.at, err = Now(ctx, s.Queue); err != nil {
		return err
	}
	w := s.worker(worker.Config{Name: "demo", Concurrency: 2 * (answers + hanging)})
	worker.Handle(w, "answer", func(_ context.Context, n int) (int, error) { return n, nil })
	w.HandleRaw("hang", hang)
	agentwait.Handle(w, "fanout", s.fanout)
	return Together(ctx, func(ctx context.Context) error {
		agent, err := s.Queue.Enqueue(ctx, queue.Task{Kind: "fanout", Payload: []byte("null"), Timeout: s.Timeout + time.Minute})
		if err != nil {
			return err
		}
		s.Say("an agent starts %d tasks and waits for them, but no longer than %v; %d of them hang", answers+hanging, s.Timeout, hanging)
		if err := s.until(ctx, "the end of the agent", func() bool {
			ends, _ := endsOf(s.seen)
			return ends[agent.ID].Kind != ""
		}); err != nil {
			return err
		}
		result, err := s.Queue.Result(ctx, agent.ID)
		if err != nil {
			return err
		}
		if want := fmt.Sprint(answers); string(result) != want {
			return fmt.Errorf("the agent got %s results, want %s", result, want)
		}
		if err := checkFanout(s.seen, agent.ID); err != nil {
			return err
		}
		return s.audit(ctx)
	}, s.reaper().Run, w.Run)
}

// fanout returns how many tasks have completed at the limit of its wait.
func (s *Scene) fanout(a *agentwait.Agent, _ any) (int, error) {
	var futures []*agentwait.Future[int]
	for n := range answers + hanging {
		kind := "answer"
		if n >= answers {
			kind = "hang"
		}
		futures = append(futures, agentwait.Schedule[int](a, n, queue.Task{Kind: kind}))
	}
	settled, err := agentwait.JoinAllSettled(a.With(agentwait.Wait{Limit: s.Timeout, Proceed: true}), futures...)
	if err != nil {
		return 0, err
	}
	return len(settled.Completed), nil
}

// checkFanout returns an error unless the events say that the agent woke as promised.
func checkFanout(seen []events.Event, agent string) error {
	ends, err := endsOf(seen)
	if err != nil {
		return err
	}
	limits := all(seen, "wait_timed_out")
	if len(limits) != 1 || limits[0].TaskID != agent {
		return fmt.Errorf("%d waits reached their limit, want that of the agent", len(limits))
	}
	due, err := instantOf(limits[0], "wait_deadline_at")
	if err != nil {
		return err
	}
	completed, cancelled := 0, 0
	for id, e := range ends {
		switch {
		case id == agent && e.Kind != "task_completed":
			return fmt.Errorf("the agent ended with %s", e.Kind)
		case id == agent:
		case e.Kind == "task_completed" && !e.At.After(due):
			completed++
		case e.Kind == "task_cancelled":
			cancelled++
			if err := within("the cancellation of "+id, e.At, due); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the task %s ended with %s", id, e.Kind)
		}
	}
	if completed != answers || cancelled != hanging {
		return fmt.Errorf("%d tasks completed and %d were cancelled, want %d and %d", completed, cancelled, answers, hanging)
	}
	for _, e := range all(seen, "task_started") {
		if e.TaskID == agent && e.Epoch > 1 {
			return within("the agent", e.At, due)
		}
	}
	return fmt.Errorf("the agent did not wake")
}
