package events_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestAWaitingReadReturnsANewEvent(t *testing.T) {
	telling(t, func(t *testing.T, q *queue.Queue) {
		var woken atomic.Bool
		blocking := make(chan struct{}, 100)
		q.Client().AddHook(queuetest.Around{Name: "xread", Before: func() { blocking <- struct{}{} }, After: func(err error) { woken.Store(woken.Load() || err == nil) }})
		queuetest.Busy(t, q, 2)
		type answer struct {
			events.Batch
			error
		}
		answered := make(chan answer, 1)
		go func() {
			b, err := events.Read(context.Background(), q, events.Newest, 10, time.Hour)
			answered <- answer{b, err}
		}()
		<-blocking
		r := queuetest.Enqueue(t, q, queue.Task{Kind: "late"})
		a := await.Receive(t, answered, "the reader returns")
		if a.error != nil || len(a.Events) != 1 || a.Events[0].TaskID != r.ID || a.Events[0].Kind != "task_enqueued" {
			t.Errorf("the reader got %+v, %v, want task_enqueued of %s", a.Batch, a.error, r.ID)
		}
		if !woken.Load() {
			t.Error("no blocking read returned an event: the reader only polled")
		}
	})
}

func TestTheWaitOfReadIsBounded(t *testing.T) {
	telling(t, func(t *testing.T, q *queue.Queue) {
		start := time.Now()
		b, err := events.Read(context.Background(), q, events.Oldest, 10, 50*time.Millisecond)
		if took := time.Since(start); err != nil || b.Events != nil || took < 50*time.Millisecond {
			t.Errorf("a Read that waits 50 ms without an event = %+v, %v after %v", b, err, took)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		enough := errors.New("enough")
		q.Client().AddHook(queuetest.Around{Name: "xread", Before: func() { cancel(enough) }})
		b, err = events.Read(ctx, q, events.Newest, 10, time.Hour)
		if !errors.Is(err, enough) || b.Next == events.Newest {
			t.Errorf("a Read that is cancelled = %+v, %v, want the cause, and a cursor to continue from", b, err)
		}
	})
}

func TestAWaitingReadReturnsAnErrorIfRedisIsDown(t *testing.T) {
	t.Parallel() // it waits until Redis is given up
	server := redistest.Start(t)
	q := queuetest.Open(t, server.Client(t), queue.Config{})
	q.Client().AddHook(queuetest.Around{Name: "xread", Before: server.Kill})
	if _, err := events.Read(context.Background(), q, events.Oldest, 10, time.Hour); !errors.Is(err, refusal.ErrUnavailable) && !errors.Is(err, refusal.ErrUnknown) {
		t.Errorf("Read = %v, want ErrUnavailable or ErrUnknown", err)
	}
}

func TestEventsOfAClusterAreReadAndWaitedFor(t *testing.T) {
	t.Parallel() // a cluster takes seconds to come up
	q := queuetest.Open(t, queuetest.ClusterOfOne(t), queue.Config{Partitions: 3, Events: "all"})
	queuetest.Busy(t, q, 6)
	all := read(t, q, events.Oldest, 100)
	if len(all.Events) != 18 {
		t.Errorf("read %d events, want 18", len(all.Events))
	}
	answered := make(chan []events.Event)
	go func() {
		b, _ := events.Read(context.Background(), q, all.Next, 10, time.Hour)
		answered <- b.Events
	}()
	r := queuetest.Enqueue(t, q, queue.Task{})
	if events := await.Receive(t, answered, "the reader returns"); len(events) != 1 || events[0].TaskID != r.ID {
		t.Errorf("the reader got %v, want an event of %s", events, r.ID)
	}
}
