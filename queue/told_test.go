package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// soonest is less than the time after which a reaper sweeps without a message.
const soonest = 100 * time.Millisecond

// instant is the text of an alarm for an instant after the start of the test clock.
func instant(after time.Duration) string {
	return fmt.Sprint(testclock.Start.Add(after).UnixMilli())
}

// A listener that misses such a message polls after some seconds. So without this test no other
// would notice that a message is not sent.
func TestMessagesAreSentBeforeTheCallReturns(t *testing.T) {
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
			want           string // ID means the task's id
		}{
			{"a watched task is complete", "ended", bare, func(l *listener) { l.complete() }, "ID"},
			{"a watched task is cancelled", "ended", bare, cancel, "ID"},
			{"a watched task is late", "ended", bare, late, "ID"},
			{"its task is cancelled", "stop:w", bare, cancel, "ID 1 cancelled"},
			{"its task is being cancelled", "stop:w", grace, cancel, "ID 1 cancelling"},
			{"its task is late", "stop:w", bare, late, "ID 1 timeout"},
			{"its attempt is late and is repeated", "stop:w", repeat, late, "ID 1 timeout"},
			{"a deadline is before the next sweep", "alarm", bare, func(l *listener) {
				l.sweep() // the reaper now waits
				l.enqueue(queue.Task{Timeout: soonest})
			}, instant(soonest)},
			{"a queue timeout is before the next sweep", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{QueueTimeout: soonest})
			}, instant(soonest)},
			{"an attempt timeout is before the next sweep", "alarm", bare, func(l *listener) {
				l.enqueue(queue.Task{AttemptTimeout: soonest})
				l.sweep()
				l.fetch(time.Minute)
			}, instant(soonest)},
			{"a start is before the next sweep", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{Delay: soonest})
			}, instant(soonest)},
			{"a retry is before the next sweep", "alarm", repeat, func(l *listener) {
				l.sweep()
				l.w.Settle(l, queue.Outcome{ID: l.claim.ID, Epoch: l.claim.Epoch, Verb: queue.Fail, Class: queue.ClassError, Delay: soonest})
			}, instant(soonest)},
			{"a new worker's lease ends before the next sweep", "alarm", bare, func(l *listener) {
				l.sweep()
				l.fetch(soonest)
			}, instant(soonest)},
			{"a known worker's lease ends before the next sweep", "alarm", bare, func(l *listener) {
				l.sweep()
				l.heartbeat(soonest)
			}, instant(soonest)},
			{"a queue's rate allows a task before the next sweep", "alarm", bare, func(l *listener) {
				l.limitRate(queue.Rate{N: 1, Per: soonest})
				l.sweep()
				l.enqueue(queue.Task{})
				l.enqueue(queue.Task{})
				l.fetch(time.Minute)
			}, instant(soonest)},
			{"children must be ended at once", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{ID: l.claim.ID + ".child"})
				l.complete()
			}, instant(0)},
			{"a second deadline is before the next sweep, after an alarm and a late sweep", "alarm", bare, func(l *listener) {
				l.sweep()
				l.enqueue(queue.Task{Timeout: soonest})
				l.hears()
				late(l)
				l.sweep() // the first sweep took back a worker's tasks, and a reaper then sweeps again at once
				l.enqueue(queue.Task{Timeout: soonest})
			}, instant(2*time.Minute + soonest)},
		} {
			t.Run(row.claim, func(t *testing.T) {
				l := newListener(t, rdb, fmt.Sprint("told", i), row.channel, row.task)
				row.act(l)
				if got, want := l.hears(), strings.Replace(row.want, "ID", l.claim.ID, 1); got != want {
					t.Errorf("channel %s has messages %q, want %q", row.channel, got, want)
				}
			})
		}
	})
}

// listener has a running task that is watched, and a subscription to a channel.
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
	if _, err := l.sub.Receive(ctx); err != nil { // Redis confirms the subscription
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
	ask := claim.Ask{N: 1, Seq: 1, Lease: lease, Quotas: []claim.Quota{{Queue: "default", N: 1}}}
	if _, err := claim.Of(l.q).Fetch(context.Background(), 0, "another", ask); err != nil {
		l.Fatal(err)
	}
}

func (l *listener) limitRate(r queue.Rate) {
	if _, err := l.q.LimitRate(context.Background(), "default", r); err != nil {
		l.Fatal(err)
	}
}

func (l *listener) heartbeat(lease time.Duration) {
	held := []claim.Held{{ID: l.claim.ID, Epoch: l.claim.Epoch}}
	if _, err := claim.Of(l.q).Heartbeat(context.Background(), 0, "w", lease, 1, held); err != nil {
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

// hears returns the messages since its last call. Redis sends messages in the order in which they
// were published, so a message that hears publishes itself comes after all others.
func (l *listener) hears() string {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), await.Patience)
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
