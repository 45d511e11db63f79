package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// mostOverdue is how many overdue tasks are read to learn their queues.
const mostOverdue = 1000

// snapshot is what one scrape reads from Redis. A part that could not be read is nil.
type snapshot struct {
	stats   *queue.Stats
	named   named // the labels of queues and kinds
	figures []inspect.KindFigures
	short   bool // the figures of some kinds could not be read, so sums over kinds are too small
	oldest  []inspect.Oldest
	workers []inspect.Worker
	due     *inspect.DueCounts
	overdue []inspect.Due // the first ones; not nil if all could be read
	sweeps  []inspect.Sweep
	servers []map[string]string // the INFO of each server

	took time.Duration
	away bool  // Redis could not be read, so no part is exported
	err  error // what could not be read
}

// readSnapshot reads all parts. If a key is damaged or may not be read, the other parts are still read.
func readSnapshot(ctx context.Context, q *queue.Queue, c Config) *snapshot {
	began, s := time.Now(), &snapshot{}
	for _, part := range []func(context.Context, *queue.Queue, Config) error{s.readFleet, s.readTasks, s.readOldest, s.readDeadlines, s.readServers} {
		err := part(ctx, q, c)
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
	return errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) || errors.Is(err, refusal.ErrNoRight)
}

// readTasks reads the counts of queues and kinds, and chooses the labels.
func (s *snapshot) readTasks(ctx context.Context, q *queue.Queue, c Config) error {
	stats, err := q.Stats(ctx)
	if err == nil {
		s.stats = &stats
	} else if !partial(err) {
		return err
	}
	var odd error
	s.figures, odd = inspect.Figures(ctx, q)              // with an error, too, it returns what it could read
	if s.short = odd != nil; !s.short && counts(ctx, q) { // a kind that could not be read is not one without tasks
		s.figures = append(s.figures, expected(s.figures, s.workers)...)
	}
	s.named = newNamed(s.figures, stats, c)
	return errors.Join(err, odd)
}

// readOldest reads the oldest tasks of the queues that have a label of their own.
func (s *snapshot) readOldest(ctx context.Context, q *queue.Queue, _ Config) (err error) {
	if s.stats == nil {
		return nil
	}
	var queues []queue.QueueStats
	for _, one := range s.stats.Queues {
		if s.named.queues[one.Queue] {
			queues = append(queues, one)
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
		s.overdue, _, err = inspect.DueTasks(ctx, q, time.Time{}, due.Now, mostOverdue)
	}
	return err
}

// readFleet reads who works for the namespace.
func (s *snapshot) readFleet(ctx context.Context, q *queue.Queue, _ Config) (err error) {
	var odd error
	s.workers, err = inspect.Workers(ctx, q)
	s.sweeps, odd = inspect.Sweeps(ctx, q)
	return errors.Join(err, odd)
}

// readServers reads the INFO of each server that has a partition.
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
			if err != nil && !errors.As(err, &refused) { // some managed servers do not have all sections
				return q.Engine().Unread(ctx, p, err)
			}
			engine.ReadInfo(facts, info)
		}
		s.servers = append(s.servers, facts)
	}
	return nil
}
