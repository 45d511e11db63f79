package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// The number of pairs of a queue and a kind in Redis is unbounded, and the labels Other need the sum
// over all pairs. So the totals are read in the background. A scrape waits for them, but not so long
// that its other values would be late.

const (
	// maxTotals limits a read of the totals, which reads about 40,000 pairs per second.
	maxTotals = time.Minute
	// restFor is the pause after a slow read, as a multiple of its time, so that reads use at most a
	// tenth of a processor.
	restFor = 10
)

// errTotals means that the totals could not be read although Redis could.
var errTotals = errors.New("the counts of queues and kinds")

// totals are the counts of Redis from one read.
type totals struct {
	samples *samples // nil if Redis could not be read
	labels  labelSet // the labels of queues and kinds
	began   time.Time
	err     error // set if a part could not be read

	tasks // at the time of this read
}

// tasks are the tasks and workers of one instant. What could not be read is nil.
type tasks struct {
	stats   *queue.Stats
	workers []inspect.Worker
	err     error
}

// newTotals returns the totals of a namespace, which are read as needed.
func newTotals(open func(context.Context) (*queue.Queue, error), c Config, families map[string]family) *shared[*totals] {
	var last *totals // the last totals that could be read
	return &shared[*totals]{wait: maxTotals,
		keep: func(took time.Duration) time.Duration {
			if took < c.Timeout/2 {
				return 0 // snapshots are kept by themselves
			}
			return restFor * took
		},
		read: func(ctx context.Context) *totals {
			t := &totals{began: time.Now()}
			q, err := open(ctx)
			if err == nil {
				err = t.read(ctx, q, c, families)
			}
			if t.err = err; t.samples != nil {
				last = t
			} else if last != nil {
				old := *last
				t, t.err = &old, err
			}
			return t
		}}
}

// read reads the counts of queues and kinds, and chooses the labels.
func (t *totals) read(ctx context.Context, q *queue.Queue, c Config, families map[string]family) error {
	t.tasks = readTasks(ctx, q)
	if t.tasks.err != nil && !partial(t.tasks.err) {
		return t.tasks.err
	}
	figures, figuresErr := inspect.Figures(ctx, q) // even with an error, it returns the figures that it could read
	if figuresErr != nil && !partial(figuresErr) {
		return figuresErr
	}
	if figuresErr == nil && counts(ctx, q) { // after an error a missing kind may have tasks, so it must not be exported as 0
		figures = append(figures, expected(figures, t.workers)...)
	}
	t.labels = newLabelSet(figures, t.queues(), c)
	t.samples = newSamples(families)
	t.samples.addFigures(figures, t.labels, figuresErr != nil)
	return errors.Join(t.tasks.err, figuresErr)
}

// readTasks reads the numbers of tasks, and the workers of the namespace.
func readTasks(ctx context.Context, q *queue.Queue) (now tasks) {
	workers, workersErr := inspect.Workers(ctx, q)
	if workersErr == nil {
		now.workers = workers
	}
	stats, err := q.Stats(ctx)
	if err == nil {
		now.stats = &stats
	}
	now.err = errors.Join(workersErr, err)
	return now
}

// queues returns the queues, if they could be read.
func (t tasks) queues() []queue.QueueStats {
	if t.stats == nil {
		return nil
	}
	return t.stats.Queues
}
