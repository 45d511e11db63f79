package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// soonest is sooner than the fall-back, after which a reaper looks anyway.
const soonest = 100 * time.Millisecond

// instant is how an alarm says when, a while after the beginning.
func instant(after time.Duration) string {
	return fmt.Sprint(testclock.Start.Add(after).UnixMilli())
}

// Whoever misses such a message looks again after some seconds, so without this test
// nobody would notice that none is sent.
func TestWhoListensIsToldBeforeTheCallReturns(t *testing.T) {
	var (
		bare   = queue.Task{Timeout: time.Minute}
		grace  = queue.Task{CancelGrace: time.Second}
		repeat = queue.Task{AttemptTimeout: time.Minute, MaxRetries: 1, OnTimeout: queue.OnTimeoutRetry}
	)
	cancel := func(l *listener) { l.cancel() }
	late := func(l *listener) { l.advance(2 * time.Minute); l.sweep() }
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for i, row := range []struct {
			claim, channel string
			task           queue.Task
			act            func(*listener)
			want           string // ID stands for the task's id
		}{
			{"a watched task is complete", "ended", bare, func(l *listener) { l.complete() }, "ID"},
			{"a watched task is cancelled", "ended", bare, cancel, "ID"},
			{"a watched task is late", "ended", bare, late, "ID"},
			{"its task is cancelled", "stop:w", bare, cancel, "ID 1 cancelled"},
			{"its task is being cancelled", "stop:w", grace, cancel, "ID 1 cancelling"},
			{"its task is late", "stop:w", bare, late, "ID 1 timeout"},
			{"its attempt is late and is repeated", "stop:w", repeat, late, "ID 1 timeout"},
			{"a deadline is earlier than it looks", "alarm", bare, func(l *listener) {
				l.sweep() // from now on it rests
				l.enqueue(queue.Task{Timeout: soonest})
			}, instant(soonest)},
			{"a limit of the line is earlier than it looks", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{QueueTimeout: soonest})
			}, instant(soonest)},
			{"the limit of an attempt is earlier than it looks", "alarm", bare, func(l *listener) {
				l.enqueue(queue.Task{AttemptTimeout: soonest})
				l.sweep()
				l.fetch(time.Minute)
			}, instant(soonest)},
			{"a start is earlier than it looks", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{Delay: soonest})
			}, instant(soonest)},
			{"a retry is earlier than it looks", "alarm", repeat, func(l *listener) {
				l.sweep()
				l.w.Settle(l, queue.Outcome{ID: l.claim.ID, Epoch: l.claim.Epoch, Verb: queue.Fail, Class: queue.ClassError, Delay: soonest})
			}, instant(soonest)},
			{"a new worker's lease ends earlier than it looks", "alarm", bare, func(l *listener) {
				l.sweep()
				l.fetch(soonest)
			}, instant(soonest)},
			{"a known worker's lease ends earlier than it looks", "alarm", bare, func(l *listener) {
				l.sweep()
				l.heartbeat(soonest)
			}, instant(soonest)},
			{"a queue may give again earlier than it looks", "alarm", bare, func(l *listener) {
				l.limitRate(queue.Rate{N: 1, Per: soonest})
				l.sweep()
				l.enqueue(queue.Task{})
				l.enqueue(queue.Task{})
				l.fetch(time.Minute)
			}, instant(soonest)},
			{"children are to be ended at once", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{ID: l.claim.ID + ".child"})
				l.complete()
			}, instant(0)},
			{"it rested in vain, and something is due earlier again", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{Timeout: soonest})
				l.hears()
				late(l)
				l.sweep() // the first took a worker back, and a reaper looks at once whether there are more
				l.enqueue(queue.Task{Timeout: soonest})
			}, instant(2*time.Minute + soonest)},
		} {
			t.Run(row.claim, func(t *testing.T) {
				l := newListener(t, rdb, fmt.Sprint("told", i), row.channel, row.task)
				row.act(l)
				if got, want := l.hears(), strings.Replace(row.want, "ID", l.claim.ID, 1); got != want {
					t.Errorf("on %s came %q, want %q", row.channel, got, want)
				}
			})
		}
	})
}

// listener holds a running task that is watched, and listens to a channel.
type listener struct {
	testing.TB
	q       *queue.Queue
	rdb     redis.UniversalClient
	w       *queuetest.Taker
	claim   queue.Claim
	channel string
	sub     *redis.PubSub
}

func newListener(t *testing.T, rdb redis.UniversalClient, namespace, channel string, task queue.Task) *listener {
	t.Helper()
	ctx, library := context.Background(), testclock.Library(t, rdb)
	l := &listener{TB: t, rdb: rdb, q: queuetest.Open(t, rdb, queue.Config{Namespace: namespace, Library: library})}
	l.w = &queuetest.Taker{Q: l.q, Worker: "w"}
	id := queuetest.Enqueue(t, l.q, task).ID
	l.claim = l.w.Take(t, id, "default")
	if _, err := library.Run(ctx, rdb, "watch", l.q.Root(0), id); err != nil {
		t.Fatal(err)
	}
	l.channel = l.q.Root(0) + ":" + channel
	l.sub = rdb.Subscribe(ctx, l.channel)
	t.Cleanup(func() { l.sub.Close() })
	if _, err := l.sub.Receive(ctx); err != nil { // Redis has confirmed it
		t.Fatal(err)
	}
	return l
}

func (l *listener) complete() {
	l.w.Settle(l, queue.Outcome{ID: l.claim.ID, Epoch: l.claim.Epoch, Verb: queue.Complete})
}

func (l *listener) cancel() {
	if _, err := l.q.Cancel(context.Background(), l.claim.ID, ""); err != nil {
		l.Fatal(err)
	}
}

func (l *listener) enqueue(task queue.Task) { queuetest.Enqueue(l, l.q, task) }

func (l *listener) fetch(lease time.Duration) {
	ask := queue.Ask{N: 1, Seq: 1, Lease: lease, Quotas: []queue.Quota{{Queue: "default", N: 1}}}
	if _, err := l.q.Attempts().Fetch(context.Background(), 0, "another", ask); err != nil {
		l.Fatal(err)
	}
}

func (l *listener) limitRate(r queue.Rate) {
	if _, err := l.q.LimitRate(context.Background(), "default", r); err != nil {
		l.Fatal(err)
	}
}

func (l *listener) heartbeat(lease time.Duration) {
	held := []queue.Held{{ID: l.claim.ID, Epoch: l.claim.Epoch}}
	if _, err := l.q.Attempts().Heartbeat(context.Background(), 0, "w", lease, 1, held); err != nil {
		l.Fatal(err)
	}
}

func (l *listener) advance(d time.Duration) {
	testclock.Set(l, l.rdb, l.q.Root(0), testclock.Start.Add(d))
}

func (l *listener) sweep() {
	if _, err := reaper.Sweep(context.Background(), l.q, 0, "r", 100, time.Second); err != nil {
		l.Fatal(err)
	}
}

// hears is what has come since it was last asked. Redis sends messages in the order in
// which they were published, so behind all others comes one of our own.
func (l *listener) hears() string {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	const mark = "no more"
	if err := l.rdb.Publish(ctx, l.channel, mark).Err(); err != nil {
		l.Fatal(err)
	}
	var heard []string
	for {
		m, err := l.sub.ReceiveMessage(ctx)
		if err != nil {
			l.Fatal(err)
		}
		if m.Payload == mark {
			return strings.Join(heard, ", ")
		}
		heard = append(heard, m.Payload)
	}
}
