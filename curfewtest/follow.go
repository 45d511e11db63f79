package curfewtest

import (
	"context"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// act is a running attempt.
type act struct {
	id     string
	epoch  int64
	cancel context.CancelCauseFunc
}

// following makes the attempts of a worker end by the clock of the stage.
func (s *Stage) following(w *worker.Worker) {
	s.mu.Lock()
	follows := s.follow[w]
	s.follow[w] = true
	s.mu.Unlock()
	if !follows {
		w.Use(s.middleware)
	}
}

func (s *Stage) middleware(next worker.Handler) worker.Handler {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		job := worker.Info(ctx)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		a := &act{job.ID, job.Epoch, cancel}
		s.mu.Lock()
		s.acting[a] = true
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.acting, a)
			s.mu.Unlock()
		}()
		return next(agentwait.WithClock(ctx, s.Now), payload)
	}
}

// stopOverdue ends the contexts of attempts that are over at an instant, or that another call has ended.
func (s *Stage) stopOverdue(at time.Time) {
	s.tb.Helper()
	var acts []*act
	var ids []string
	s.mu.Lock()
	for a := range s.acting {
		acts, ids = append(acts, a), append(ids, a.id)
	}
	s.mu.Unlock()
	if len(acts) == 0 {
		return
	}
	records, err := s.Queue.GetAll(s.ctx, ids)
	if err != nil {
		s.tb.Fatalf("Advance: %v", err)
	}
	for i, a := range acts {
		if cause := a.over(records[i], at); cause != nil {
			a.cancel(cause)
		}
	}
}

// over returns why an attempt is over at an instant, nil if it is not.
func (a *act) over(r *queue.Record, at time.Time) error {
	passed := func(limit time.Time) bool { return !limit.IsZero() && limit.Before(at) }
	switch {
	case r == nil || r.Epoch != a.epoch:
		return worker.ErrClaimLost
	case r.Status == queue.Cancelled:
		return worker.ErrCancelled
	case r.TimedOut && r.TimeoutType == "attempt":
		return worker.ErrAttemptTimeout
	case r.TimedOut:
		return worker.ErrDeadline
	case r.Status != queue.Running:
		return worker.ErrClaimLost
	case !r.CancelAt.IsZero():
		return worker.ErrCancelled
	case passed(r.LimitAt) && !(passed(r.Until) && r.Until.Before(r.LimitAt)):
		return worker.ErrAttemptTimeout
	case passed(r.Until):
		return worker.ErrDeadline
	case r.Overdue:
		return worker.ErrCancelled // its owner has ended
	}
	return nil
}
