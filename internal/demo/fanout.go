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
			life := lifeOf(s.seen, agent.ID)
			return len(life) > 0 && terminal(life[len(life)-1])
		}); err != nil {
			return err
		}
		result, err := s.Queue.Result(ctx, agent.ID)
		if err != nil {
			return err
		}
		if err := checkFanout(s.seen, agent.ID, string(result), s.Timeout); err != nil {
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

// checkFanout returns an error unless the events and the result of the agent say that it woke as promised.
func checkFanout(seen []events.Event, agent, result string, limit time.Duration) error {
	life, err := lived(seen, agent, "enqueued started suspended wait_timed_out resumed started completed")
	if err != nil {
		return err
	}
	wait, woke := life[3], life[5]
	due, err := instantOf(wait, "wait_deadline_at")
	if err != nil {
		return err
	}
	if got, want := wait.Fields["timeout_duration_ms"], fmt.Sprint(limit.Milliseconds()); got != want {
		return fmt.Errorf("the limit of the wait was %s ms, want %s ms", got, want)
	}
	if err := within("the agent", woke.At, due); err != nil {
		return err
	}
	if want := fmt.Sprint(answers); result != want {
		return fmt.Errorf("the agent got %s results, want %s", result, want)
	}
	count := map[string]int{}
	for _, e := range all(seen, "task_enqueued") {
		if e.Owner != agent {
			continue
		}
		count[e.TaskKind]++
		if err := checkMember(seen, e, due); err != nil {
			return err
		}
	}
	if count["answer"] != answers || count["hang"] != hanging {
		return fmt.Errorf("the agent started %d tasks that answer and %d that hang, want %d and %d", count["answer"], count["hang"], answers, hanging)
	}
	return nil
}

// checkMember returns an error unless a task of the agent ended as its kind does.
func checkMember(seen []events.Event, task events.Event, due time.Time) error {
	if task.TaskKind == "hang" {
		life, err := lived(seen, task.TaskID, "enqueued started cancelled")
		if err != nil {
			return err
		}
		return within("the cancellation of "+task.TaskID, life[2].At, due)
	}
	life, err := lived(seen, task.TaskID, "enqueued started completed")
	if err == nil && life[2].At.After(due) {
		err = fmt.Errorf("the task %s completed after the agent had woken", task.TaskID)
	}
	return err
}
