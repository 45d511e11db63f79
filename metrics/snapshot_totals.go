package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// There is no bound on how many pairs of a queue and a kind have counts in Redis, and the labels Other need the sum over all of them. So
// the totals are read in the background. A scrape waits for them, but not for so long that its other values would be late.

const (
	// longestTotals is how long a read of the totals can take. It reads about 40,000 pairs in a second.
	longestTotals = time.Minute
	// restFor is how many times as long as it took a slow read is not repeated. So it uses at most a tenth of the time of a processor.
	restFor = 10
)

// errTotals means that the totals could not be read, and that Redis can be read.
var errTotals = errors.New("the counts of queues and kinds")

// totals are what Redis has counted, as one read has found it.
type totals struct {
	samples *samples // nil if Redis could not be read
	named   named    // the labels of queues and kinds
	began   time.Time
	err     error // what could not be read

	tasks // as this read has found them
}

// tasks are the tasks and workers of one instant. What could not be read is nil.
type tasks struct {
	stats   *queue.Stats
	workers []inspect.Worker
	err     error
}

// newTotals returns the totals of a namespace, which are read as needed.
func newTotals(open func(context.Context) (*queue.Queue, error), c Config, families map[string]family) *shared[*totals] {
	var last *totals // that could be read
	return &shared[*totals]{wait: longestTotals,
		keep: func(took time.Duration) time.Duration {
			if took < c.Timeout/2 {
				return 0 // a snapshot is kept, too
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
	figures, odd := inspect.Figures(ctx, q) // with an error, too, it returns what it could read
	if odd != nil && !partial(odd) {
		return odd
	}
	if odd == nil && counts(ctx, q) { // a kind that could not be read is not one without tasks
		figures = append(figures, expected(figures, t.workers)...)
	}
	t.named = newNamed(figures, t.queues(), c)
	t.samples = newSamples(families)
	t.samples.addFigures(figures, t.named, odd != nil)
	return errors.Join(t.tasks.err, odd)
}

// readTasks reads how many tasks there are, and who works for the namespace.
func readTasks(ctx context.Context, q *queue.Queue) (now tasks) {
	workers, odd := inspect.Workers(ctx, q)
	if odd == nil {
		now.workers = workers
	}
	stats, err := q.Stats(ctx)
	if err == nil {
		now.stats = &stats
	}
	now.err = errors.Join(odd, err)
	return now
}

// queues returns the queues, if they could be read.
func (t tasks) queues() []queue.QueueStats {
	if t.stats == nil {
		return nil
	}
	return t.stats.Queues
}
