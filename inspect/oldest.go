package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Oldest is the task of a queue that has been in line for the longest time.
type Oldest struct {
	Queue string        `json:"queue"`
	ID    string        `json:"id"`
	Since time.Time     `json:"since_at"` // since when it can be fetched
	Wait  time.Duration `json:"wait_ms"`  // how long that is, on the clock of Redis
}

// OldestWaiting returns the task that has been in line for the longest time, of each queue that has tasks in
// line, sorted by queue. It looks at the first task of each priority in each partition, so its cost depends on the
// number of queues and not on that of tasks. A task that was given back or woken stands before others of its priority, so
// that one behind it can have waited longer.
func OldestWaiting(ctx context.Context, q *queue.Queue) ([]Oldest, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("oldest waiting", "", err)
	}
	stats, err := q.Stats(ctx)
	if err != nil {
		return nil, err
	}
	return OldestIn(ctx, q, stats.Queues)
}

// OldestIn is [OldestWaiting] for some queues. It takes their counts, as [queue.Queue.Stats] has returned them, and does
// not look at queues without tasks in line.
func OldestIn(ctx context.Context, q *queue.Queue, queues []queue.QueueStats) ([]Oldest, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("oldest waiting", "", err)
	}
	oldest := map[string]Oldest{}
	for some := range slices.Chunk(queues, 100) {
		for p := range q.Partitions() {
			if err := addOldest(ctx, q, p, some, oldest); err != nil {
				return nil, refusal.Failed("oldest waiting", "", err)
			}
		}
	}
	list := make([]Oldest, 0, len(oldest))
	for _, o := range oldest {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Oldest) int { return strings.Compare(a.Queue, b.Queue) })
	return list, nil
}

// addOldest looks at the first task of each priority of some queues in a partition.
func addOldest(ctx context.Context, q *queue.Queue, p int, queues []queue.QueueStats, oldest map[string]Oldest) error {
	var firsts []*redis.StringSliceCmd
	q.Client().Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command has its own error
		for _, s := range queues {
			for priority := range int64(4) {
				if middle := (3 - priority) << 50; s.Ready > 0 { // docs/reference/keys.md, Place in line
					firsts = append(firsts, pipe.ZRangeByScore(ctx, q.Root(p)+":ready:"+s.Queue,
						&redis.ZRangeBy{Min: fmt.Sprint(middle - 1<<49), Max: fmt.Sprint(middle + 1<<49), Count: 1}))
				}
			}
		}
		return nil
	})
	var ids []string
	for _, first := range firsts {
		some, err := first.Result()
		if err != nil {
			return q.Engine().Unread(ctx, p, err)
		}
		ids = append(ids, some...)
	}
	for len(ids) > 0 {
		records, now, err := q.GetSome(ctx, p, ids)
		if errors.Is(err, refusal.ErrBroken) && len(ids) > 1 { // one cannot be read: read them one by one
			records, now, err = q.GetSome(ctx, p, ids[:1])
		}
		if errors.Is(err, refusal.ErrBroken) {
			records, err = []*queue.Record{nil}, nil
		}
		if err != nil {
			return err
		}
		for _, r := range records {
			if r == nil || r.Status != queue.Pending {
				continue
			}
			o := Oldest{Queue: r.Queue, ID: r.ID, Since: readyAt(r)}
			if known, there := oldest[r.Queue]; !there || o.Since.Before(known.Since) {
				o.Wait = max(now.Sub(o.Since), 0)
				oldest[r.Queue] = o
			}
		}
		ids = ids[len(records):]
	}
	return nil
}

// readyAt returns since when a task in line can be fetched: since it was created, or since its delay or the wait before
// its retry was over, or since it was given back.
func readyAt(r *queue.Record) time.Time {
	if at := engine.Instant(r.Fields["ready_at"]); !at.IsZero() {
		return at
	}
	return r.CreatedAt
}
