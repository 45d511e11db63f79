package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Crew is a set of workers with the queues and kinds that they serve.
type Crew struct {
	workers []Worker // live workers with known queues that are not draining
	leaving []Worker // live workers with known queues that are draining
	// Silent is set if the queues of a worker are unknown, or some workers could not be read. Then
	// no queue is certainly unserved.
	Silent bool
}

// CrewOf sorts workers by whether they take tasks.
func CrewOf(workers []Worker) Crew {
	var c Crew
	for _, w := range workers {
		switch {
		case w.State == queue.WorkerDraining:
			c.leaving = append(c.leaving, w)
		case len(w.Queues) == 0 && len(w.Strict) == 0:
			c.Silent = true
		default:
			c.workers = append(c.workers, w)
		}
	}
	return c
}

// Serves reports whether a queue is among the queues that the worker reported.
func (w Worker) Serves(name string) bool {
	_, weighted := w.Queues[name]
	return weighted || slices.Contains(w.Strict, name)
}

// Unserved reports whether no worker takes tasks of a queue. nearest is the served queue with the
// most similar name, "" if none is similar. leaving reports whether the workers that serve it are
// draining.
func (c Crew) Unserved(name string) (unserved bool, nearest string, leaving bool) {
	if c.Silent {
		return false, "", false
	}
	served := map[string]bool{}
	for _, w := range c.workers {
		for _, queue := range slices.Concat(w.Strict, slices.Collect(maps.Keys(w.Queues))) {
			served[queue] = true
		}
	}
	if served[name] {
		return false, "", false
	}
	leaving = slices.ContainsFunc(c.leaving, func(w Worker) bool { return w.Serves(name) })
	return true, names.Nearest(name, slices.Sorted(maps.Keys(served))), leaving
}

// Unhandled reports whether no worker that takes tasks of a queue handles a kind. nearest is the
// handled kind with the most similar name, "" if none is similar.
func (c Crew) Unhandled(name, kind string) (unhandled bool, nearest string) {
	if c.Silent {
		return false, ""
	}
	handled := map[string]bool{}
	for _, w := range c.workers {
		if !w.Serves(name) {
			continue
		}
		if w.Kinds == nil {
			return false, "" // the kinds of this worker are unknown
		}
		for _, k := range w.Kinds {
			if start, pattern := strings.CutSuffix(k, "*"); pattern && strings.HasPrefix(kind, start) {
				return false, ""
			}
			handled[k] = true
		}
	}
	return !handled[kind], names.Nearest(kind, slices.Sorted(maps.Keys(handled)))
}

// crewSize is the number of workers that readCrew reads. Redis needs a few µs for each.
const crewSize = 1000

// readCrew reads the live workers of a partition in one call. If the user may not read them, the
// Crew is Silent.
func readCrew(ctx context.Context, q *queue.Queue, partition int, now time.Time) (Crew, error) {
	reply, err := q.Engine().Call(ctx, partition, "read_workers", "0", crewSize)
	answers, err := engine.List(reply, err, 2)
	if errors.Is(err, refusal.ErrNoRight) || errors.Is(err, refusal.ErrWrongType) {
		return Crew{Silent: true}, nil
	}
	if err != nil {
		return Crew{}, err
	}
	var live []Worker
	for _, answer := range answers[2:] {
		row, err := engine.List(answer, nil, 3)
		if err != nil {
			return Crew{}, err
		}
		w := Worker{ID: engine.Text(row[0])}
		if w.add(row); !w.LeaseEnds.Before(now) {
			live = append(live, w)
		}
	}
	crew := CrewOf(live)
	crew.Silent = crew.Silent || engine.Text(answers[1]) != "0" // there are more workers than were read
	return crew, nil
}

// wantsWorker reports whether the task needs a worker to continue, or would have needed one.
func (o *observed) wantsWorker() bool {
	waits := o.record["status"] == string(queue.Pending) && o.record["role"] == "" && !o.unfit()
	return (waits || o.neverStarted()) && ms(o.facts, "workers") > 0
}

// explainCrew warns if no live worker takes tasks of the queue, or if none of its workers handles
// the kind.
func (o *observed) explainCrew(e *Explanation) {
	if unserved, nearest, leaving := o.crew.Unserved(e.Queue); unserved {
		text := "no live worker serves queue " + e.Queue
		if leaving {
			text = "the workers that serve queue " + e.Queue + " are draining, and take no more tasks"
			nearest = ""
		}
		e.warn(WarnUnserved, text+near(nearest))
		return
	}
	if unhandled, nearest := o.crew.Unhandled(e.Queue, e.Kind); unhandled {
		e.warn(WarnNoHandler, "no live worker that serves queue "+e.Queue+" handles the kind "+e.Kind+near(nearest))
	}
}

func near(name string) string {
	if name == "" {
		return ""
	}
	return " (nearest: " + name + ")"
}
