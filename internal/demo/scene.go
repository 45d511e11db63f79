package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// lifeOf returns what happened to a task, in that order.
func lifeOf(seen []events.Event, id string) (life []events.Event) {
	for _, e := range seen {
		if e.TaskID == id {
			life = append(life, e)
		}
	}
	return life
}

// lived returns what happened to a task, and an error unless that is of the kinds that are wanted: "enqueued started completed".
func lived(seen []events.Event, id, want string) ([]events.Event, error) {
	life := lifeOf(seen, id)
	var kinds, ends []string
	for _, e := range life {
		kind := strings.TrimPrefix(e.Kind, "task_")
		kinds = append(kinds, kind)
		if terminal(e) {
			ends = append(ends, kind)
		}
	}
	switch {
	case len(ends) == 0:
		return nil, fmt.Errorf("the task %s did not end", id)
	case len(ends) > 1:
		return nil, fmt.Errorf("the task %s ended %d times: %s", id, len(ends), strings.Join(ends, ", "))
	case strings.Join(kinds, " ") != want:
		return nil, fmt.Errorf("the task %s was %s; want %s", id, strings.Join(kinds, ", "), strings.ReplaceAll(want, " ", ", "))
	}
	return life, nil
}

// audit returns an error if records and indexes disagree.
func (s *Scene) audit(ctx context.Context) error {
	found, err := inspect.Audit(ctx, s.Queue)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("the audit found %d mistakes, such as %v", len(found), found[0])
	}
	return err
}

// within returns an error if something happened before its instant, or more than the promised time after it.
func within(what string, at, due time.Time) error {
	switch late := at.Sub(due); {
	case late < 0:
		return fmt.Errorf("%s came %v too early", what, -late)
	case late > promised:
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
