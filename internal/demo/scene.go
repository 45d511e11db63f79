package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// Scene is what a scene needs. Its namespace has no other tasks, and writes all events.
type Scene struct {
	Queue   *queue.Queue
	Timeout time.Duration
	Say     func(format string, args ...any)          // tells what the scene does
	See     func(context.Context, events.Batch) error // tells what happens

	at   events.Cursor
	seen []events.Event
}

// patience is how long a scene waits, beyond the time that it needs, before it fails.
const patience = 20 * time.Second

// worker returns a worker whose handlers may hang when it ends.
func (s *Scene) worker(config worker.Config) *worker.Worker {
	config.NoReaper, config.Logger = true, slog.New(slog.DiscardHandler)
	config.ShutdownTimeout, config.ShutdownGrace = time.Millisecond, time.Millisecond
	return worker.New(s.Queue, config)
}

func (s *Scene) reaper() *reaper.Reaper {
	return reaper.New(s.Queue, reaper.Config{Name: "demo", Logger: slog.New(slog.DiscardHandler)})
}

// until reads events until enough is true.
func (s *Scene) until(ctx context.Context, what string, enough func() bool) error {
	ctx, stop := context.WithTimeoutCause(ctx, s.Timeout*2+patience, fmt.Errorf("%s did not happen within %v", what, s.Timeout*2+patience))
	defer stop()
	return Follow(ctx, s.Queue, s.at, func(batch events.Batch) (bool, error) {
		s.at = batch.Next
		if len(batch.Gaps) > 0 {
			return false, errors.New("events were lost, so the scene cannot be checked")
		}
		s.seen = append(s.seen, batch.Events...)
		return enough(), s.See(ctx, batch)
	})
}

// all returns the events of a kind.
func all(seen []events.Event, kind string) (found []events.Event) {
	for _, e := range seen {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// terminal reports whether an event is the end of a task.
func terminal(e events.Event) bool {
	return e.Kind == "task_completed" || e.Kind == "task_failed" || e.Kind == "task_cancelled" || e.Kind == "task_timed_out"
}

// endsOf returns the end of each task. It returns an error if a task ended twice.
func endsOf(seen []events.Event) (map[string]events.Event, error) {
	ends := map[string]events.Event{}
	for _, e := range seen {
		if !terminal(e) {
			continue
		}
		if before, twice := ends[e.TaskID]; twice {
			return nil, fmt.Errorf("the task %s ended twice: %s and %s", e.TaskID, before.Kind, e.Kind)
		}
		ends[e.TaskID] = e
	}
	return ends, nil
}

// audit returns an error if records and indexes disagree.
func (s *Scene) audit(ctx context.Context) error {
	found, err := inspect.Audit(ctx, s.Queue)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("the audit found %d mistakes, such as %v", len(found), found[0])
	}
	return err
}

// within returns an error if something happened later after its instant than is promised.
func within(what string, at, due time.Time) error {
	if late := at.Sub(due); late > promised {
		return fmt.Errorf("%s came %v late, and must come within %v", what, late, promised)
	}
	return nil
}

func instantOf(e events.Event, field string) (time.Time, error) {
	var ms int64
	if _, err := fmt.Sscan(e.Fields[field], &ms); err != nil {
		return time.Time{}, fmt.Errorf("the event %s has no %s", e.Kind, field)
	}
	return time.UnixMilli(ms), nil
}
