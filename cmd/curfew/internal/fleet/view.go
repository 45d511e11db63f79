package fleet

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
)

// view is the data that top shows about a namespace. It is not a snapshot.
type view struct {
	namespace string
	queues    []lines.Queue
	due       inspect.DueCounts
	next      []inspect.Due // the next deadlines
	workers   []lines.Worker
	lags      []time.Duration // how late the newest timeouts were written, sorted
	took      time.Duration   // how long it took to read
	err       error           // why it could not be read anew
}

const (
	viewBuckets = 40
	viewNext    = 50 // more than fit on most screens
	viewEntries = 20 // entries of the event stream of each partition
)

// readView reads a view. Apart from queues and workers, whose number bounds it, it reads a fixed amount for each partition.
func readView(ctx context.Context, q *queue.Queue, namespace string) (v view, err error) {
	began := time.Now()
	v.namespace = namespace
	stats, err := q.Stats(ctx)
	if err != nil {
		return v, err
	}
	for _, s := range stats.Queues {
		v.queues = append(v.queues, lines.OfQueue(s))
	}
	if v.due, err = inspect.Deadlines(ctx, q, 0, viewBuckets); err != nil {
		return v, err
	}
	if v.next, _, err = inspect.DueTasks(ctx, q, time.Time{}, v.due.Now.Add(100*365*24*time.Hour), viewNext); err != nil {
		return v, err
	}
	workers, err := inspect.Workers(ctx, q)
	if err != nil {
		return v, err
	}
	for _, w := range workers {
		v.workers = append(v.workers, lines.OfWorker(w))
	}
	newest, err := events.Recent(ctx, q, viewEntries)
	if err != nil {
		return v, err
	}
	for _, e := range newest {
		if ms, err := strconv.ParseInt(e.Fields["lag_ms"], 10, 32); err == nil && ms >= 0 {
			v.lags = append(v.lags, time.Duration(ms)*time.Millisecond)
		}
	}
	slices.Sort(v.lags)
	v.took = time.Since(began)
	return v, nil
}
