package curfewtest

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Run is an attempt, and what became of its task.
type Run struct {
	// Record is the task as it was when the attempt had been reported. It is nil if
	// the record was gone by then.
	*queue.Record
	// Ran says what the worker was handed, what it reported, and whether Redis took
	// that: Verdict.Accepted is false if the task was out of time, or not its any more.
	worker.Ran
}

// Enqueue hands over a task. What the worker says by Defaults holds for it; for tasks
// that others enqueue it holds from the first Enqueue, RunOne or Drain on.
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

// RunOne takes the next ready task, runs its handler in this goroutine, and returns
// what became of it. If no task is ready the test fails: Drain is for those who
// want to know.
//
// Next is the first of a queue: priority 3 before 2, then who came first. Of several
// queues it is the first by name or, if Config.Worker names queues, the one of the
// greatest weight; of several partitions it is the first.
func (s *Stage) RunOne() *Run {
	s.tb.Helper()
	run := s.runOne("RunOne")
	if run == nil {
		s.tb.Fatalf("RunOne: no task is ready.%s", s.left())
	}
	return run
}

// Drain runs what is ready, and what that makes ready, until nothing is. It does not
// move the clock: what waits for a later attempt goes on waiting.
func (s *Stage) Drain() []*Run {
	s.tb.Helper()
	return s.drain("Drain", nil)
}

// DrainAll is Drain that also moves the clock, to where the next task starts, until no
// task is delayed or waits for another attempt, and no agent is in a wait that has a
// limit. The clock stays where the last of them started. Records whose retention ends on the way go.
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

// skip moves the clock to where something is due.
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
			s.tb.Fatalf("%s ran %d tasks and is not at the end. The last was task %s of kind %q, which ran %s. "+
				"If no task makes itself ready again and again, raise Config.MaxRuns.",
				verb, len(runs), run.Claim.ID, run.Claim.Kind, plural(times, "time"))
		}
	}
}

func (s *Stage) runOne(verb string) *Run {
	s.tb.Helper()
	w := s.Worker
	s.following(w)
	var queues []string // the worker's own
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
