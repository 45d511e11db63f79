package queue_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestAWaitingReaderIsWokenByAnEvent(t *testing.T) {
	telling(t, func(t *testing.T, q *queue.Queue) {
		var woken atomic.Bool
		blocking := make(chan struct{}, 100)
		q.Client().AddHook(around{name: "xread", before: func() { blocking <- struct{}{} }, after: func(err error) { woken.Store(woken.Load() || err == nil) }})
		busy(t, q, 2)
		type answer struct {
			queue.EventBatch
			error
		}
		answered := make(chan answer, 1)
		go func() {
			b, err := q.Events(context.Background(), queue.Newest, 10, time.Minute)
			answered <- answer{b, err}
		}()
		<-blocking
		r := enqueue(t, q, queue.Task{Kind: "late"})
		select {
		case a := <-answered:
			if a.error != nil || len(a.Events) != 1 || a.Events[0].TaskID != r.ID || a.Events[0].Kind != "task_enqueued" {
				t.Errorf("woken with %+v, %v, want the enqueueing of %s", a.EventBatch, a.error, r.ID)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the reader still waits")
		}
		if !woken.Load() {
			t.Error("no blocking read was woken: the reader only looked now and then")
		}
	})
}

func TestAWaitIsBounded(t *testing.T) {
	telling(t, func(t *testing.T, q *queue.Queue) {
		start := time.Now()
		b, err := q.Events(context.Background(), queue.Oldest, 10, 50*time.Millisecond)
		if took := time.Since(start); err != nil || b.Events != nil || took < 50*time.Millisecond || took > 20*time.Second {
			t.Errorf("a wait of 50 ms for nothing = %+v, %v after %v", b, err, took)
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		enough := errors.New("enough")
		q.Client().AddHook(around{name: "xread", before: func() { cancel(enough) }})
		b, err = q.Events(ctx, queue.Newest, 10, time.Hour)
		if !errors.Is(err, enough) || b.Next == queue.Newest {
			t.Errorf("a wait that is cancelled = %+v, %v, want the cause, and a place to go on from", b, err)
		}
	})
}

func TestAReaderIsToldThatRedisWentAway(t *testing.T) {
	t.Parallel() // it waits until Redis is given up
	server := redistest.Start(t)
	q := open(t, server.Client(t), queue.Config{})
	q.Client().AddHook(around{name: "xread", before: server.Kill})
	if _, err := q.Events(context.Background(), queue.Oldest, 10, time.Hour); !errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, queue.ErrUnknown) {
		t.Errorf("Events = %v, want that there is no answer", err)
	}
}

func TestEventsOfAClusterAreReadAndWaitedFor(t *testing.T) {
	t.Parallel() // a cluster takes seconds to come up
	q := open(t, clusterOfOne(t), queue.Config{Partitions: 3, Events: "all"})
	busy(t, q, 6)
	all := read(t, q, queue.Oldest, 100)
	if len(all.Events) != 18 {
		t.Errorf("read %d events, want 18", len(all.Events))
	}
	answered := make(chan []queue.Event)
	go func() {
		b, _ := q.Events(context.Background(), all.Next, 10, time.Minute)
		answered <- b.Events
	}()
	r := enqueue(t, q, queue.Task{})
	select {
	case events := <-answered:
		if len(events) != 1 || events[0].TaskID != r.ID {
			t.Errorf("woken with %v, want %s", events, r.ID)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the reader still waits")
	}
}

func clusterOfOne(t *testing.T) redis.UniversalClient {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, bus, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	server := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	ctx := context.Background()
	if err := server.Client(t).Do(ctx, "CLUSTER", "ADDSLOTSRANGE", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	await.Until(t, "the cluster is up", func() bool { return rdb.Get(ctx, "x").Err() == redis.Nil })
	return rdb
}
