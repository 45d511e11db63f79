package curfewtest

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Run is an attempt and its result.
type Run struct {
	// Record is the task after the attempt was reported. It is nil if the record had been removed by
	// then.
	*queue.Record
	// Ran has the worker's claim, its report, and whether Redis accepted the report: Verdict.Accepted returns false if
	// the task was out of time or the worker had lost it.
	worker.Ran
}

// Enqueue enqueues a task. It first defines the kinds of the worker, so the worker's Defaults apply to the
// task. For tasks that the code under test enqueues they apply after the first Enqueue, RunOne or Drain.
// The test fails if the task is refused.
func (s *Stage) Enqueue(task queue.Task) queue.Receipt {
	s.tb.Helper()
	if err := s.Worker.DefineKinds(s.ctx); err != nil {
		s.tb.Fatalf("Enqueue: %v", err)
	}
	r, err := s.Queue.Enqueue(s.ctx, task)
	if err != nil {
		s.tb.Fatalf("Enqueue of a task of kind %q: %v", task.Kind, err)
	}
	return r
}

// RunOne takes the next ready task, runs its handler in this goroutine, and returns the result. The test
// fails if no task is ready; Drain accepts that.
//
// The next task of a queue is the one with the highest priority, and of those the one that got in line
// first. RunOne uses the first partition that has a ready task. There it takes from the queues in the order of
// their names or, if Config.Worker names queues, of their weights, the greatest first.
func (s *Stage) RunOne() *Run {
	s.tb.Helper()
	run := s.runOne("RunOne")
	if run == nil {
		s.tb.Fatalf("RunOne: no task is ready.%s", s.unfinished())
	}
	return run
}

// Drain runs ready tasks, and tasks that become ready by that, until there are none. It does not move
// the clock, so delayed tasks and retries with a back-off do not run. The test fails after
// Config.MaxRuns runs.
func (s *Stage) Drain() []*Run {
	s.tb.Helper()
	return s.drain("Drain", nil)
}

// DrainAll runs ready tasks as Drain does, and moves the clock to the next start of a task, until no
// task is delayed or waits for a retry, and no agent is in a wait with a limit. The clock stays at the
// last of these instants. Records whose retention ends on the way are removed.
func (s *Stage) DrainAll() (runs []*Run) {
	s.tb.Helper()
	for {
		runs = s.drain("DrainAll", runs)
		if stats := s.stats(); stats.Delayed+stats.Waits == 0 {
			return runs
		}
		s.skip()
	}
}

// skip moves the clock to the next instant at which something is due.
func (s *Stage) skip() {
	s.tb.Helper()
	s.moving.Lock()
	defer s.moving.Unlock()
	const far = 100 * 365 * 24 * time.Hour
	s.move(s.sweep(far))
	s.sweep(far)
}

func (s *Stage) drain(verb string, runs []*Run) []*Run {
	s.tb.Helper()
	for {
		run := s.runOne(verb)
		if run == nil {
			return runs
		}
		if runs = append(runs, run); len(runs) >= s.config.MaxRuns {
			times := 0
			for _, r := range runs {
				if r.Claim.ID == run.Claim.ID {
					times++
				}
			}
			s.tb.Fatalf("%s ran %d tasks, and more are ready. The last was task %s of kind %q, which ran %s. "+
				"If no task becomes ready without end, raise Config.MaxRuns.",
				verb, len(runs), run.Claim.ID, run.Claim.Kind, plural(times, "time"))
		}
	}
}

func (s *Stage) runOne(verb string) *Run {
	s.tb.Helper()
	w := s.Worker
	s.following(w)
	if s.bubble {
		s.Advance(0) // what became due while the test or a handler slept
	}
	var queues []string // empty for the worker's own queues
	if c := &s.config.Worker; w == s.own && len(c.Queues) == 0 && len(c.Strict) == 0 {
		for _, line := range s.stats().Queues {
			queues = append(queues, line.Queue)
		}
		if len(queues) == 0 {
			return nil // nothing was ever enqueued
		}
	}
	ran, err := w.RunOne(s.ctx, queues...)
	if err != nil {
		s.tb.Fatalf("%s: %v", verb, err)
	}
	if ran == nil {
		return nil
	}
	records, err := s.Queue.GetAll(s.ctx, []string{ran.Claim.ID})
	if err != nil {
		s.tb.Fatalf("%s: %v", verb, err)
	}
	return &Run{Record: records[0], Ran: *ran}
}

func (s *Stage) stats() queue.Stats {
	s.tb.Helper()
	stats, err := s.Queue.Stats(s.ctx)
	if err != nil {
		s.tb.Fatalf("curfewtest: %v", err)
	}
	return stats
}
