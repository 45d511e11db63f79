package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// late is how long after its instant a change must be written.
const late = time.Second

// clocks are the sorted sets of a partition whose entries are due at their score.
var clocks = []string{"deadlines", "limits", "delayed", "waits", "workers"}

// lookAtWork checks that due changes are written in time, and that workers handle the tasks.
func (x *examination) lookAtWork(ctx context.Context, q *queue.Queue) error {
	overdue, idle, err := x.lookAtClocks(ctx, q)
	if x.denied("due work", err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case len(idle) > 0 && !overdue.some:
		x.report(Warn, "reaper", "no reaper runs in "+partitions(idle), "run `curfew reap`, or a worker, before tasks with deadlines are enqueued")
	case len(idle) > 0:
		x.report(Fail, "reaper", "no reaper runs in "+partitions(idle)+", so deadlines are not kept", "run `curfew reap`, or a worker")
	default:
		x.report(OK, "reaper", "one runs in each partition", "")
	}
	if overdue.n > 0 {
		x.report(Fail, "due work", fmt.Sprintf("%s more than %v past, the oldest for %v", counted(overdue.n, "instant is", "instants are"), duration.Duration(late), duration.Duration(overdue.oldest.Round(time.Millisecond))),
			"run another reaper, and look into the logs of those that run")
	} else {
		x.report(OK, "due work", "everything that is due is written", "")
	}
	if x.Quick {
		return nil
	}
	if err := x.lookAtLatency(ctx, q); err != nil {
		return err
	}
	err = x.lookAtQueues(ctx, q)
	if x.denied("queues", err) {
		return nil
	}
	return err
}

func partitions(list []int) string {
	if len(list) == 1 {
		return fmt.Sprint("partition ", list[0])
	}
	return fmt.Sprintf("%d partitions", len(list))
}

type due struct {
	some   bool // a clock has an entry
	n      int64
	oldest time.Duration
}

// lookAtClocks returns the overdue instants, and the partitions without a reaper. It skips a key of the wrong type.
func (x *examination) lookAtClocks(ctx context.Context, q *queue.Queue) (overdue due, idle []int, err error) {
	now, err := times(ctx, q)
	if err != nil {
		return overdue, nil, err
	}
	firsts, turns := make([]map[string]*redis.ZSliceCmd, len(now)), make([]*redis.StringCmd, len(now))
	q.Engine().Pipelined(ctx, func(pipe redis.Pipeliner, p int) {
		firsts[p] = map[string]*redis.ZSliceCmd{}
		for _, clock := range clocks {
			firsts[p][clock] = pipe.ZRangeWithScores(ctx, q.Root(p)+":"+clock, 0, 0)
		}
		turns[p] = pipe.HGet(ctx, q.Root(p), "turn_until")
	})
	past := make([][]string, len(now)) // keys with something overdue
	for p := range now {
		for _, clock := range clocks {
			rows, err := firsts[p][clock].Result()
			if redis.HasErrorPrefix(err, "WRONGTYPE") || err == nil && len(rows) == 0 {
				continue
			}
			if err != nil {
				return overdue, nil, err
			}
			overdue.some = true
			if by := now[p].Sub(time.UnixMilli(int64(rows[0].Score))); by > late {
				overdue.oldest = max(overdue.oldest, by)
				past[p] = append(past[p], q.Root(p)+":"+clock)
			}
		}
		until, err := turns[p].Int64()
		if err != nil && err != redis.Nil && !errors.Is(err, strconv.ErrSyntax) {
			return overdue, nil, err
		}
		if until < now[p].UnixMilli() {
			idle = append(idle, p)
		}
	}
	var counts []*redis.IntCmd
	q.Engine().Pipelined(ctx, func(pipe redis.Pipeliner, p int) {
		for _, key := range past[p] {
			counts = append(counts, pipe.ZCount(ctx, key, "-inf", "("+strconv.FormatInt(now[p].Add(-late).UnixMilli(), 10)))
		}
	})
	for _, count := range counts {
		n, err := count.Result()
		if err != nil {
			return overdue, nil, err
		}
		overdue.n += n
	}
	return overdue, idle, nil
}

// times returns the server time for each partition. It asks each server once.
func times(ctx context.Context, q *queue.Queue) ([]time.Time, error) {
	byNode := map[redis.Cmdable]time.Time{}
	list := make([]time.Time, q.Partitions())
	for p := range list {
		node, err := q.Engine().Node(ctx, p)
		if err != nil {
			return nil, err
		}
		if _, asked := byNode[node]; !asked {
			if byNode[node], err = node.Time(ctx).Result(); err != nil {
				return nil, err
			}
		}
		list[p] = byNode[node]
	}
	return list, nil
}

// lookAtLatency measures a call that only reads.
func (x *examination) lookAtLatency(ctx context.Context, q *queue.Queue) error {
	var took []time.Duration
	for range 5 {
		began := time.Now()
		if _, err := q.Engine().Call(ctx, 0, "read", "0-0000000000000000"); err != nil {
			if x.denied("calls", err) {
				return nil
			}
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	text := fmt.Sprintf("a call that reads takes %v", duration.Duration(max(took[2].Round(10*time.Microsecond), 10*time.Microsecond)))
	if took[2] > 20*time.Millisecond {
		x.report(Warn, "calls", text, "is Redis busy with something else (SLOWLOG GET), or far away?")
	} else {
		x.report(OK, "calls", text, "")
	}
	return nil
}

// lookAtQueues looks for work that nobody does.
func (x *examination) lookAtQueues(ctx context.Context, q *queue.Queue) error {
	stats, err := q.Stats(ctx)
	if err != nil {
		return err
	}
	workers, err := inspect.Workers(ctx, q)
	if err != nil {
		return err
	}
	if err := x.lookAtUnbounded(ctx, q, stats.NoDeadline); err != nil {
		return err
	}
	before := len(x.findings)
	crew := inspect.CrewOf(workers)
	for _, s := range stats.Queues {
		if s.Full > 0 {
			where, refused := "", ""
			if s.Refused > 0 {
				refused = fmt.Sprintf(" (%d so far)", s.Refused)
			}
			if s.Full < q.Partitions() { // each partition refuses when its own share is used up
				where = fmt.Sprintf(" in %d of %d partitions", s.Full, q.Partitions())
			}
			x.report(Warn, "queues", fmt.Sprintf("queue %s is full%s: %s in line, and its maximum length is %d, so new tasks are refused%s", s.Queue, where,
				counted(s.Ready+s.Held, "task is", "tasks are"), s.MaxLength, refused), "run more workers, or raise it with `curfew queue limit "+s.Queue+" --length`")
		}
		if s.Ready == 0 {
			continue
		}
		waits := fmt.Sprintf("%s in line in queue %s, and ", counted(s.Ready, "task is", "tasks are"), s.Queue)
		unserved, nearest, _ := crew.Unserved(s.Queue)
		switch {
		case s.Paused:
			x.report(Warn, "queues", waits+"it is paused", "resume it")
		case len(workers) == 0:
			x.report(Warn, "queues", waits+"no worker lives", "run one that serves it")
		case unserved:
			cure := "run one that serves it"
			if nearest != "" {
				cure += ", or enqueue to " + nearest
			}
			x.report(Warn, "queues", waits+"no live worker serves it", cure)
		}
	}
	x.reportHeld(stats.Held, crew)
	if stats.Broken > 0 {
		x.report(Warn, "records", counted(stats.Broken, "task is", "tasks are")+" put aside, since the records cannot be read", "`curfew fsck` names them")
	}
	if len(x.findings) == before {
		x.report(OK, "queues", fmt.Sprintf("%s, and every queue with tasks in line has a worker", counted(int64(len(workers)), "worker", "workers")), "")
	}
	return nil
}

// lookAtUnbounded reports how many tasks nothing ends by their time. That is no problem: a task can be meant to have no limit. The
// number of tasks without a deadline of their own is exact. Children among them end with their owner, so the first ones
// that are listed are counted too.
func (x *examination) lookAtUnbounded(ctx context.Context, q *queue.Queue, without int64) error {
	if without == 0 {
		x.report(OK, "limits", "every task has a deadline", "")
		return nil
	}
	page, err := inspect.List(ctx, q, inspect.Filter{Unbounded: true}, "", 1000)
	if x.denied("limits", err) {
		return nil
	}
	if err != nil {
		return err
	}
	n := fmt.Sprint(len(page.Lines))
	if page.Next != "" {
		n = "at least " + n
	}
	x.report(OK, "limits", fmt.Sprintf("tasks without a deadline of their own: %d; without any, as `curfew ls --unbounded` lists them: %s", without, n), "")
	return nil
}

// reportHeld reports the tasks that are held.
func (x *examination) reportHeld(held []queue.Held, crew inspect.Crew) {
	for _, h := range held {
		switch h.Reason {
		case queue.HeldSuspect:
			x.report(Warn, "workers", fmt.Sprintf("workers died while they ran the kind %s of queue %s: %s held apart, and may be the cause", h.Kind, h.Queue,
				counted(h.Tasks, "task is", "tasks are")), fmt.Sprintf("read the logs of the dead workers; `curfew ls --queue %s --kind %s --status PENDING` lists"+
				" the tasks, and `curfew explain ID` has how many workers in a row died", h.Queue, h.Kind))
			continue
		case queue.HeldDiverged:
			x.report(Warn, "agents", fmt.Sprintf("the code of kind %s in queue %s has changed so that no worker can continue %s", h.Kind, h.Queue,
				counted(h.Tasks, "agent", "agents")), "run a program with code that fits; `curfew explain` has the difference")
			continue
		}
		cure := "run one that does"
		if _, nearest := crew.Unhandled(h.Queue, h.Kind); nearest != "" {
			cure += ", or enqueue the kind " + nearest
		}
		x.report(Warn, "kinds", fmt.Sprintf("no live worker of queue %s handles the kind %s: %s held", h.Queue, h.Kind, counted(h.Tasks, "task is", "tasks are")), cure)
	}
}
