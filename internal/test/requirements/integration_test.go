package requirements

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// late checks that a task timed out, and that this was detected after its deadline. internal/test/timing measures how soon.
func (s *stage) late(id string) *queue.Record {
	s.Helper()
	r := s.timedOut(id)
	if lag := r.DetectedAt.Sub(r.Deadline); lag <= 0 {
		s.Errorf("the timeout of task %s was detected %v after the deadline", id, lag)
	}
	return r
}

func timesOutAfterDeadline(t *testing.T) {
	s := running(t)
	_, stop := s.work(worker.Config{}, sleepy(time.Minute))
	id := s.enqueue(queue.Task{Kind: "k", Timeout: 1000 * time.Millisecond})
	_, err := s.result(id)
	if !exceeded(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("its result is %v", err)
	}
	if r := s.late(id); r.StartedAt.IsZero() {
		t.Error("it never ran")
	}
	stop()
	if n := len(s.timeouts()); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func timesOutWithoutWorker(t *testing.T) {
	s := running(t)
	s.reap(reaper.Config{})
	ids := s.enqueueAll(10, func(int) queue.Task {
		return queue.Task{Kind: "nobody", Timeout: 300 * time.Millisecond, MaxRetries: 3}
	})
	await.Until(t, "all have timed out", func() bool { return len(s.timeouts()) == len(ids) })
	for _, id := range ids {
		if r := s.late(id); r.Epoch != 0 || !r.StartedAt.IsZero() {
			t.Errorf("a task that no worker took was claimed %d times", r.Epoch)
		}
	}
}

func retriesAreAttemptsMore(t *testing.T) {
	s := running(t)
	var executions atomic.Int64
	_, stop := s.work(worker.Config{}, func(context.Context) error { executions.Add(1); return errAlways })
	id := s.enqueue(queue.Task{Kind: "k", Timeout: time.Minute, MaxRetries: 2})
	_, err := s.result(id)
	var failed *queue.TaskFailedError
	if !errors.As(err, &failed) || failed.Err.Error() != errAlways.Error() {
		t.Errorf("its result is %v", err)
	}
	stop()
	if n := executions.Load(); n != 3 {
		t.Errorf("%d executions, want 3", n)
	}
	if r := s.record(id); r.Status != queue.Failed || r.Retries != 2 || r.TimedOut {
		t.Errorf("the task is %s after %d retries", r.Status, r.Retries)
	}
}

func timeoutIsPermanent(t *testing.T) {
	s := running(t)
	var executions atomic.Int64
	_, stop := s.work(worker.Config{}, func(ctx context.Context) error {
		executions.Add(1)
		<-ctx.Done()
		return ctx.Err()
	})
	id := s.enqueue(queue.Task{Kind: "k", Timeout: 3 * time.Second, MaxRetries: 3})
	if _, err := s.result(id); !exceeded(err) {
		t.Errorf("its result is %v", err)
	}
	stop()
	if r := s.late(id); executions.Load() != 1 || r.Retries != 0 || r.Epoch != 1 {
		t.Errorf("%d executions, %d retries, %d claims; want 1, 0, 1", executions.Load(), r.Retries, r.Epoch)
	}
}

func eightReapers(t *testing.T) {
	const n = 1000
	s := running(t)
	var timedOut atomic.Int64
	for range 8 {
		// Small batches and a short fall-back, so that the reapers collide.
		s.reap(reaper.Config{Batch: 10, Fallback: 5 * time.Millisecond, Observe: func(_ int, swept reaper.Swept) {
			timedOut.Add(int64(swept.TimedOut))
		}})
	}
	ids := s.enqueueAll(n, func(i int) queue.Task {
		return queue.Task{Kind: "k", Timeout: 500*time.Millisecond + time.Duration(i%100)*time.Millisecond}
	})
	await.Until(t, "all have timed out", func() bool { return timedOut.Load() >= n })
	s.enqueue(queue.Task{Kind: "k", Timeout: time.Millisecond}) // its event comes after all events of the others
	await.Until(t, "one more has timed out", func() bool { return timedOut.Load() > n })
	events := s.timeouts() // fails if a task has two
	if len(events) != n+1 || timedOut.Load() != n+1 {
		t.Errorf("%d events, and the reapers counted %d; want %d", len(events), timedOut.Load(), n+1)
	}
	for _, id := range ids {
		if events[id] == nil {
			t.Errorf("task %s has no event", id)
		}
	}
}

func tenThousandAtOnce(t *testing.T) {
	n := int64(size.Times(2000, 2000, 10_000))
	s := frozen(t) // so that all tasks are due in the same ms
	s.enqueueAll(int(n), func(int) queue.Task { return queue.Task{Kind: "k", Timeout: time.Second} })
	s.advance(time.Second + time.Millisecond)
	var timedOut, sweeps atomic.Int64
	s.reap(reaper.Config{Batch: 100, Observe: func(_ int, swept reaper.Swept) {
		if swept.TimedOut > 0 {
			sweeps.Add(1)
		}
		timedOut.Add(int64(swept.TimedOut))
	}})
	await.Until(t, "all have timed out", func() bool { return timedOut.Load() == n })
	if sweeps.Load() != n/100 {
		t.Errorf("one reaper swept %d times for %d timeouts, want full batches of 100", sweeps.Load(), n)
	}
	if events := s.timeouts(); len(events) != int(n) {
		t.Errorf("%d events, want %d", len(events), n)
	}
	if in := s.members("deadlines"); len(in) != 0 {
		t.Errorf("%d tasks are still in the index", len(in))
	}
}

// endToEnd is the last test of the document: a timeout of 5 s, and a worker that sleeps longer.
// The worker sends heartbeats all the time, which must not matter. A caller that waits for the
// result gets it at 5 s.
func endToEnd(t *testing.T, handle func(context.Context) error) (s *stage, w *worker.Worker, stop func(), id string) {
	s = running(t)
	w, stop = s.work(worker.Config{Lease: 10 * time.Second, Beat: 200 * time.Millisecond}, handle)
	start := time.Now()
	id = s.enqueue(queue.Task{Kind: "k", Timeout: 5 * time.Second, MaxRetries: 3})
	_, err := s.result(id)
	if took := time.Since(start); took < 5*time.Second {
		t.Errorf("Result returned after %v, want 5s or more", took)
	}
	if !exceeded(err) {
		t.Errorf("Result = %v, want a timeout", err)
	}
	if r := s.late(id); r.Epoch != 1 || r.LeaseLosses != 0 {
		t.Errorf("it was claimed %d times and lost %d leases", r.Epoch, r.LeaseLosses)
	}
	return s, w, stop, id
}

func endToEndRespectful(t *testing.T) {
	cause := make(chan error, 1)
	s, _, stop, id := endToEnd(t, func(ctx context.Context) error {
		err := sleepy(time.Minute)(ctx)
		cause <- context.Cause(ctx)
		return err
	})
	if err := await.Receive(t, cause, "the context of the handler ends"); !errors.Is(err, worker.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the cause of the handler's context is %v", err)
	}
	stop()
	s.timedOut(id)
}

func endToEndDeaf(t *testing.T) {
	handle, wake := deaf(time.Minute)
	defer wake()
	s, w, stop, id := endToEnd(t, handle)
	if n := w.Stats().Running; n != 1 {
		t.Errorf("%d handlers run, want 1, which still sleeps", n)
	}
	before := s.record(id).Fields
	wake() // the handler returns success, which is refused
	stop()
	if stats := w.Stats(); stats.Completed != 0 || stats.Running != 0 {
		t.Errorf("%d completions were accepted, %d handlers run", stats.Completed, stats.Running)
	}
	after := s.timedOut(id).Fields
	delete(after, "late_by") // that a report came late is noted, unless the worker knew before that the task had ended
	if len(after) != len(before) || after["completed_at"] != before["completed_at"] {
		t.Errorf("the late completion changed the record from %v to %v", before, after)
	}
	if n := len(s.timeouts()); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}
