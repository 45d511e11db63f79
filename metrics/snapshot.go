package metrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// maxOverdue bounds the overdue tasks that are read for their queues.
const maxOverdue = 1000

// snapshot is the result of one scrape's read of Redis. A part that could not be read is nil.
type snapshot struct {
	totals  *totals // nil until they have been read the first time
	stats   *queue.Stats
	labels  labelSet // the labels of queues and kinds
	oldest  []inspect.Oldest
	workers []inspect.Worker
	due     *inspect.DueCounts
	overdue []inspect.Due // the first ones; not nil if all could be read
	sweeps  []inspect.Sweep
	servers []map[string]string // the INFO of each server that may be asked for it

	took time.Duration
	away bool  // Redis could not be read, so no part is exported
	err  error // set if a part could not be read
}

// readSnapshot reads all parts. If a key is damaged or may not be read, the other parts are still read.
func readSnapshot(ctx context.Context, q *queue.Queue, c Config, counted *shared[*totals]) *snapshot {
	began, s := time.Now(), &snapshot{}
	readTotals := func(ctx context.Context, q *queue.Queue, c Config) error {
		return s.readTotals(ctx, q, c, counted, began)
	}
	for _, read := range []func(context.Context, *queue.Queue, Config) error{s.readSweeps, s.readDeadlines, s.readServers, readTotals, s.readOldest} {
		err := read(ctx, q, c)
		s.err = errors.Join(s.err, err)
		if err != nil && !partial(err) {
			s.away = true
			break
		}
	}
	s.took = time.Since(began)
	return s
}

// partial reports whether an error is about some keys only.
func partial(err error) bool {
	return errors.Is(err, errTotals) || errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) || errors.Is(err, refusal.ErrNoRight)
}

// readTotals takes the totals, which are read in the background. It waits for them for half of the
// time that a scrape has. If they are late, it takes the totals of the previous read, and reads the
// present tasks and workers itself.
func (s *snapshot) readTotals(ctx context.Context, q *queue.Queue, c Config, counted *shared[*totals], began time.Time) error {
	t, ok := counted.newest(began.Add(c.Timeout / 2))
	if ok && !t.began.Before(began) {
		s.totals, s.labels, s.stats, s.workers = t, t.labels, t.stats, t.workers
		return t.err
	}
	now := readTasks(ctx, q)
	s.stats, s.workers = now.stats, now.workers
	if now.err != nil && !partial(now.err) {
		return now.err
	}
	if !ok || t.samples == nil {
		s.labels = newLabelSet(nil, now.queues(), c)
		return now.err
	}
	s.totals, s.labels = t, t.labels
	if t.err != nil && !partial(t.err) {
		return errors.Join(now.err, fmt.Errorf("%w: %w", errTotals, t.err))
	}
	return errors.Join(now.err, t.err)
}

// readOldest reads the oldest tasks of the queues that have a label of their own.
func (s *snapshot) readOldest(ctx context.Context, q *queue.Queue, _ Config) (err error) {
	if s.stats == nil {
		return nil
	}
	var queues []queue.QueueStats
	for _, stats := range s.stats.Queues {
		if s.labels.queues[stats.Queue] {
			queues = append(queues, stats)
		}
	}
	s.oldest, err = inspect.OldestIn(ctx, q, queues)
	return err
}

// readDeadlines counts the deadlines of the next 10 minutes, in buckets of 10 s, and reads the first overdue tasks.
func (s *snapshot) readDeadlines(ctx context.Context, q *queue.Queue, _ Config) error {
	due, err := inspect.Deadlines(ctx, q, 10*time.Minute, 60)
	if err != nil {
		return err
	}
	s.due, s.overdue = &due, []inspect.Due{}
	if due.Overdue > 0 {
		s.overdue, _, err = inspect.DueTasks(ctx, q, time.Time{}, due.Now, maxOverdue)
	}
	return err
}

func (s *snapshot) readSweeps(ctx context.Context, q *queue.Queue, _ Config) (err error) {
	s.sweeps, err = inspect.Sweeps(ctx, q)
	return err
}

// readServers reads the INFO of each server with a partition.
func (s *snapshot) readServers(ctx context.Context, q *queue.Queue, _ Config) error {
	seen := map[redis.Cmdable]bool{}
	for p := range q.Partitions() {
		node, err := q.Engine().Node(ctx, p)
		if err != nil {
			return q.Engine().Unread(ctx, p, err)
		}
		if seen[node] {
			continue
		}
		seen[node] = true
		facts := map[string]string{}
		for _, section := range []string{"server", "memory"} {
			info, err := node.Info(ctx, section).Result()
			var refused redis.Error
			if err != nil && !errors.As(err, &refused) { // some managed servers lack a section, or refuse the command
				return q.Engine().Unread(ctx, p, err)
			}
			engine.ReadInfo(facts, info)
		}
		if len(facts) > 0 {
			s.servers = append(s.servers, facts)
		}
	}
	return nil
}
