package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Crew is a set of workers, asked what they serve.
type Crew struct {
	workers []Worker // live ones that tell which queues they serve, without those that drain
	leaving []Worker // the same, that drain
	// Silent reports that some workers are not known, or do not tell which queues they serve. Then no queue is unserved for sure.
	Silent bool
}

// CrewOf returns the workers that take tasks.
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

// Serves reports whether the worker tells that it serves a queue.
func (w Worker) Serves(name string) bool {
	_, weighted := w.Queues[name]
	return weighted || slices.Contains(w.Strict, name)
}

// Unserved reports that no worker takes tasks of a queue. nearest is the queue with the most similar name that is served, "" if
// none is similar. leaving reports that workers serve it which are draining.
func (c Crew) Unserved(name string) (unserved bool, nearest string, leaving bool) {
	if c.Silent {
		return false, "", false
	}
	served := map[string]bool{}
	for _, w := range c.workers {
		for _, other := range slices.Concat(w.Strict, slices.Collect(maps.Keys(w.Queues))) {
			served[other] = true
		}
	}
	if served[name] {
		return false, "", false
	}
	leaving = slices.ContainsFunc(c.leaving, func(w Worker) bool { return w.Serves(name) })
	return true, names.Nearest(name, slices.Sorted(maps.Keys(served))), leaving
}

// Unhandled reports that no worker that takes tasks of a queue handles a kind. nearest is the kind with the most similar name that one
// of them handles, "" if none is similar.
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
			return false, "" // it does not tell
		}
		for _, other := range w.Kinds {
			handled[other] = true
		}
	}
	return !handled[kind], names.Nearest(kind, slices.Sorted(maps.Keys(handled)))
}

// crewSize is the number of workers that readCrew reads. Redis needs a few µs for each.
const crewSize = 1000

// readCrew reads the workers of a partition whose lease has not ended, in one call. It tells nothing if the user may not read them.
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
	crew.Silent = crew.Silent || engine.Text(answers[1]) != "0" // there are more
	return crew, nil
}

// wantsWorker reports whether the task cannot go on without a worker that takes it.
func (o *observed) wantsWorker() bool {
	return o.record["status"] == string(queue.Pending) && o.record["role"] == "" && ms(o.facts, "workers") > 0 && !o.unfit()
}

// explainCrew warns if no live worker takes tasks of the queue, or none of those handles the kind.
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
