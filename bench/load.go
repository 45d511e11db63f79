package bench

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Load is a steady stream of tasks to every partition. It records when each task was
// acknowledged, and when its end was seen.
type Load struct {
	q       *queue.Queue
	stop    context.CancelFunc
	senders sync.WaitGroup
	waiters sync.WaitGroup

	mu    sync.Mutex
	marks [][]*Mark // a partition, in the order sent
}

// Mark records what happened to one task. An instant is zero if that has not happened.
type Mark struct {
	ID                 string
	Sent, Acked, Ended time.Time
	Err                error // of the enqueue
	EndErr             error // of the wait for its end
}

// StartLoad enqueues a task of a kind to each partition at an interval, until ctx ends or Stop is
// called. If an enqueue takes longer, the next one begins when it has returned. The caller must run
// a worker for the tasks.
func StartLoad(ctx context.Context, q *queue.Queue, kind string, every time.Duration) *Load {
	l := &Load{q: q, marks: make([][]*Mark, q.Partitions())}
	sending, stop := context.WithCancel(ctx)
	l.stop = stop
	for p := range l.marks {
		l.senders.Go(func() { l.send(sending, p, kind, every, func(m *Mark) { l.wait(ctx, m) }) })
	}
	return l
}

// send enqueues the tasks of a partition, and calls wait for each that was acknowledged.
func (l *Load) send(ctx context.Context, p int, kind string, every time.Duration, wait func(*Mark)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ctx.Err() == nil; {
		task := queue.Task{Kind: kind, Payload: payload(), Timeout: time.Minute}
		task.IdempotencyKey, n = keyOf(p, l.q.Partitions(), n)
		m := &Mark{Sent: time.Now()}
		// Without ctx's end: the result of every enqueue must be known.
		r, err := l.q.Enqueue(context.WithoutCancel(ctx), task)
		l.mu.Lock()
		m.ID, m.Err = r.ID, err
		if err == nil {
			m.Acked = time.Now()
		}
		l.marks[p] = append(l.marks[p], m)
		l.mu.Unlock()
		if err == nil {
			l.waiters.Go(func() { wait(m) })
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// keyOf returns an idempotency key that belongs to partition p (lua/calls.md), and the number
// to continue from.
func keyOf(p, partitions, from int) (key string, next int) {
	for n := from; ; n++ {
		if key = fmt.Sprintf("load-%d", n); int(crc32.ChecksumIEEE([]byte(key))%uint32(partitions)) == p {
			return key, n + 1
		}
	}
}

func (l *Load) wait(ctx context.Context, m *Mark) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := l.q.Result(ctx, m.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.EndErr = err; err == nil {
		m.Ended = time.Now()
	}
}

// Stop ends the stream and returns the marks of each partition, in the order sent. It waits for
// all tasks to end, up to a minute each, or until the context of StartLoad ends.
func (l *Load) Stop() [][]*Mark {
	l.stop()
	l.senders.Wait()
	l.waiters.Wait()
	return l.marks
}

// Flows reports whether partition p has acknowledged and ended a task that was sent after an
// instant.
func (l *Load) Flows(p int, after time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.marks[p]) - 1; i >= 0 && l.marks[p][i].Sent.After(after); i-- {
		if !l.marks[p][i].Ended.IsZero() {
			return true
		}
	}
	return false
}

// awaitFlow waits until partition p has acknowledged and ended a task that was sent after its master was
// killed.
func (l *Load) awaitFlow(ctx context.Context, p int, killed time.Time) error {
	for !l.Flows(p, killed) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(killed) > time.Minute:
			return fmt.Errorf("partition %d is not served again: %v after its master was killed", p, time.Since(killed))
		}
		pause(ctx, 5*time.Millisecond)
	}
	return nil
}

// Gap returns the longest time after an instant in which one of the partitions acknowledged
// nothing, and the longest in which one ended nothing. A gap that has not ended does not count.
func (l *Load) Gap(partitions []int, after time.Time) (acking, ending time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range partitions {
		var acked, ended []time.Time
		for _, m := range l.marks[p] {
			acked, ended = append(acked, m.Acked), append(ended, m.Ended)
		}
		acking, ending = max(acking, gap(acked, after)), max(ending, gap(ended, after))
	}
	return acking, ending
}

// gap returns the longest time between two neighbouring instants, beginning with after.
func gap(times []time.Time, after time.Time) (longest time.Duration) {
	slices.SortFunc(times, time.Time.Compare)
	for _, at := range times {
		if at.After(after) {
			longest, after = max(longest, at.Sub(after)), at
		}
	}
	return longest
}
