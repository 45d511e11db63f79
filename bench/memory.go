package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

// withEvents is how many tasks are measured with their events. It is less than the 100,000 events
// that a stream keeps.
const withEvents = 50000

// Memory measures how many bytes a task with a payload of 100 random bytes and a deadline takes:
//
//   - the growth of used_memory with n tasks that are pending, that one worker runs, and that
//     are completed and kept. If n is large, only the newest completed tasks still have their
//     event.
//   - the same with up to 50,000 completed tasks that all have their event.
//   - the growth of the append-only file by an enqueue, a fetch and a settle, in calls of 50,
//     with up to 20,000 tasks.
//
// It turns the server's append-only file on for the last part, and then off.
func Memory(ctx context.Context, rdb redis.UniversalClient, n int) (Report, error) {
	r := Report{Bench: "memory"}
	var empty int64
	bytes := func(n int, names map[stage]string) error {
		return live(ctx, rdb, n, 500, func(s stage) error {
			now, err := usedMemory(ctx, rdb)
			if s == opened {
				empty = now
			} else if name := names[s]; name != "" {
				r.add(name, float64(now-empty)/float64(n), "B")
			}
			return err
		})
	}
	err := bytes(n, map[stage]string{pending: "memory a pending task", running: "memory a running task", ended: "memory a completed task"})
	if err == nil {
		err = bytes(min(n, withEvents), map[stage]string{ended: "memory a completed task with its event"})
	}
	if err == nil {
		err = appendOnly(ctx, rdb, min(n, 20000), &r)
	}
	return r, err
}

// stage is how far all tasks of a measurement have come.
type stage int

const (
	opened stage = iota // no task is enqueued yet
	pending
	running
	ended
)

// live enqueues, claims and completes n tasks, in calls of size tasks. It calls reached after each
// stage that all of them have reached.
func live(ctx context.Context, rdb redis.UniversalClient, n, size int, reached func(stage) error) error {
	m := &micro{rdb: rdb}
	if err := m.open(ctx); err != nil {
		return err
	}
	if err := reached(opened); err != nil {
		return err
	}
	for rest := n; rest > 0; rest -= size {
		if err := accepted(m.q.EnqueueAll(ctx, tasks(min(rest, size), noop))); err != nil {
			return err
		}
	}
	if err := reached(pending); err != nil {
		return err
	}
	var batches [][]queue.Claim
	for rest := n; rest > 0; rest -= size {
		claims, err := m.fetch(ctx, "default", min(rest, size))
		if err := enough(len(claims), min(rest, size), err); err != nil {
			return err
		}
		for i, c := range claims {
			claims[i] = queue.Claim{ID: c.ID, Epoch: c.Epoch} // drops the memory of the reply
		}
		batches = append(batches, claims)
	}
	if err := reached(running); err != nil {
		return err
	}
	for _, claims := range batches {
		if err := m.settle(ctx, claims); err != nil {
			return err
		}
	}
	return reached(ended)
}

// appendOnly measures the growth of the append-only file.
func appendOnly(ctx context.Context, rdb redis.UniversalClient, n int, r *Report) error {
	if err := rdb.FlushAll(ctx).Err(); err != nil { // otherwise the file begins with all present data
		return err
	}
	if err := startAppendOnly(ctx, rdb); err != nil {
		return err
	}
	var last int64
	names := map[stage]string{pending: "enqueue", running: "fetch", ended: "settle"}
	err := live(ctx, rdb, n, 50, func(s stage) error {
		size, err := infoNumber(ctx, rdb, "persistence", "aof_current_size")
		if name := names[s]; name != "" {
			r.add("append-only file for "+name, float64(size-last)/float64(n), "B")
		}
		last = size
		return err
	})
	if err != nil {
		return err
	}
	return rdb.ConfigSet(ctx, "appendonly", "no").Err()
}

// startAppendOnly turns the append-only file on, and waits until the server has written its base.
func startAppendOnly(ctx context.Context, rdb redis.UniversalClient) error {
	if err := configure(ctx, rdb, [][2]string{{"auto-aof-rewrite-percentage", "0"}, {"appendonly", "yes"}}); err != nil {
		return err
	}
	for {
		writing, err := infoNumber(ctx, rdb, "persistence", "aof_rewrite_in_progress")
		if err != nil || writing == 0 {
			return err
		}
		pause(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

func configure(ctx context.Context, rdb redis.UniversalClient, settings [][2]string) error {
	for _, s := range settings {
		if err := rdb.ConfigSet(ctx, s[0], s[1]).Err(); err != nil {
			return err
		}
	}
	return nil
}

func usedMemory(ctx context.Context, rdb redis.UniversalClient) (int64, error) {
	return infoNumber(ctx, rdb, "memory", "used_memory")
}

// infoNumber returns an integer of the server's INFO.
func infoNumber(ctx context.Context, rdb redis.UniversalClient, section, name string) (int64, error) {
	info, err := rdb.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(infoFields(info)[name], 10, 64)
}
