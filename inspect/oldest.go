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
	Since time.Time     `json:"since_at"` // the instant from which it can be fetched
	Wait  time.Duration `json:"wait_ms"`  // the time since then, on the clock of Redis
}

// OldestWaiting returns the task that has been in line for the longest time, for each queue that has
// tasks in line, sorted by queue. It looks at the first task of each priority in each partition. So
// its cost depends on the number of queues, but not on the number of tasks or the size of their
// headers and payloads. A task that was given back or woken comes before others of its priority, so
// that a later one can have waited longer.
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

// OldestIn is [OldestWaiting] for these queues. With the counts that [queue.Queue.Stats] has
// returned, it skips queues without tasks in line.
func OldestIn(ctx context.Context, q *queue.Queue, queues []queue.QueueStats) ([]Oldest, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("oldest waiting", "", err)
	}
	oldest := map[string]Oldest{}
	for chunk := range slices.Chunk(queues, 100) {
		for p := range q.Partitions() {
			if err := addOldest(ctx, q, p, chunk, oldest); err != nil {
				return nil, refusal.Failed("oldest waiting", "", err)
			}
		}
	}
	_, now, err := q.GetSome(ctx, 0, nil)
	if err != nil {
		return nil, refusal.Failed("oldest waiting", "", err)
	}
	list := make([]Oldest, 0, len(oldest))
	for _, o := range oldest {
		o.Wait = max(now.Sub(o.Since), 0)
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b Oldest) int { return strings.Compare(a.Queue, b.Queue) })
	return list, nil
}

// addOldest looks at the first task of each priority of these queues in a partition.
func addOldest(ctx context.Context, q *queue.Queue, p int, queues []queue.QueueStats, oldest map[string]Oldest) error {
	var firsts []*redis.StringSliceCmd
	engine.Pipelined(ctx, q.Client(), func(pipe redis.Pipeliner) {
		for _, s := range queues {
			for priority := range int64(4) {
				if middle := (3 - priority) << 50; s.Ready > 0 { // docs/reference/keys.md, Place in line
					firsts = append(firsts, pipe.ZRangeByScore(ctx, q.Root(p)+":ready:"+s.Queue,
						&redis.ZRangeBy{Min: fmt.Sprint(middle - 1<<49), Max: fmt.Sprint(middle + 1<<49), Count: 1}))
				}
			}
		}
	})
	var ids []string
	for _, reply := range firsts {
		first, err := reply.Result()
		if err != nil {
			return q.Engine().Unread(ctx, p, err)
		}
		ids = append(ids, first...)
	}
	tasks, err := readReady(ctx, q, p, ids)
	for _, o := range tasks {
		if best, exists := oldest[o.Queue]; !exists || o.Since.Before(best.Since) {
			oldest[o.Queue] = o
		}
	}
	return err
}

// firstLine is the number of bytes of a record that are read for its first line.
const firstLine = 1024

// readReady reads the instants from which tasks of a partition can be fetched, without their headers
// and payloads. It skips tasks that are no longer in line, and records that are damaged.
// docs/reference/keys.md promises the form of records.
func readReady(ctx context.Context, q *queue.Queue, p int, ids []string) ([]Oldest, error) {
	specs, states := make([]*redis.StringCmd, len(ids)), make([]*redis.StringCmd, len(ids))
	engine.Pipelined(ctx, q.Engine().Client(), func(pipe redis.Pipeliner) {
		for i, id := range ids {
			specs[i], states[i] = pipe.GetRange(ctx, q.Root(p)+":spec:"+id, 0, firstLine), pipe.Get(ctx, q.Root(p)+":state:"+id)
		}
	})
	var tasks []Oldest
	for i, id := range ids {
		for _, err := range []error{specs[i].Err(), states[i].Err()} {
			if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
				return nil, q.Engine().Unread(ctx, p, err)
			}
		}
		if redis.HasErrorPrefix(states[i].Err(), "WRONGTYPE") {
			continue
		}
		spec, state := specs[i].Val(), states[i].Val()
		if h := headOf(spec, state); h.queue != "" && h.status == queue.Pending {
			tasks = append(tasks, Oldest{Queue: h.queue, ID: id, Since: readyAt(spec, state)})
		}
	}
	return tasks, nil
}

// readyAt returns the instant from which a task in line can be fetched: its creation, the end of its
// delay or back-off, or the instant at which it was given back.
func readyAt(spec, state string) time.Time {
	lines, _, _ := strings.Cut(state, "\n\n")
	for line := range strings.Lines(lines) {
		if value, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "ready_at="); ok {
			return engine.Instant(value)
		}
	}
	first, _, _ := strings.Cut(spec, "\n")
	if words := strings.Fields(first); len(words) > 2 {
		return engine.Instant(words[2])
	}
	return time.Time{}
}
