package misuse

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Replies are lost until the context ends. Then a call that writes has an unknown outcome. A call
// that only reads has not, and neither has Result, which only waits.
func TestNoReadHasAnUnknownOutcome(t *testing.T) {
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	q, err := queue.Open(t.Context(), connect(t, "redis://"+proxy.Addr), queue.Config{Namespace: redistest.Namespace(t), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	r := must[queue.Receipt](t)(q.Enqueue(t.Context(), queue.Task{Kind: "k"}))
	// Each call finds a connection on which it sends its request: one that only waits for a connection has sent nothing for certain.
	var ready []*redis.Conn
	for range 100 {
		conn := q.Client().(*redis.Client).Conn()
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		ready = append(ready, conn)
	}
	for _, conn := range ready {
		conn.Close()
	}
	proxy.Partition(true)
	defer proxy.Partition(false)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var group sync.WaitGroup
	try := func(name string, reads bool, call func(context.Context) error) {
		group.Go(func() {
			err := call(ctx)
			if name == "Await" && err == nil {
				return // it returned at its timeout without a task
			}
			if errors.Is(err, refusal.ErrUnknown) == reads || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s = %v, want the error of the context, and ErrUnknown only for a call that writes", name, err)
			}
		})
	}
	writes, reads := calls(q, r.ID)
	for name, call := range writes {
		try(name, false, call)
	}
	for name, call := range reads {
		try(name, true, call)
	}
	try("Result", true, func(ctx context.Context) error { _, err := q.Result(ctx, r.ID); return err })
	group.Wait()
}

// Result waits through an outage that is longer than the retries of a call, until its context ends.
func TestResultOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	namespace := redistest.Namespace(t)
	q, err := queue.Open(t.Context(), connect(t, "redis://"+proxy.Addr), queue.Config{Namespace: namespace, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	r := must[queue.Receipt](t)(q.Enqueue(t.Context(), queue.Task{Kind: "k"}))
	proxy.Say("-LOADING Redis is loading the dataset in memory")
	got := make(chan error, 1)
	go func() { _, err := q.Result(t.Context(), r.ID); got <- err }()
	if _, err := q.Get(t.Context(), r.ID); !errors.Is(err, refusal.ErrUnavailable) { // five seconds, as each try of Result
		t.Errorf("Get = %v, want ErrUnavailable", err)
	}
	if _, err := q.Get(t.Context(), r.ID); !errors.Is(err, refusal.ErrUnavailable) {
		t.Errorf("Get = %v, want ErrUnavailable", err)
	}
	proxy.Say("")
	must[queue.Cancellation](t)(q.Cancel(t.Context(), r.ID, ""))
	if err := await.Receive(t, got, "Result returns"); !errors.Is(err, refusal.ErrCancelled) {
		t.Errorf("Result = %v, want the task's end", err)
	}
}

// A failover loses the end of a task between the two calls of Result: the first sees that the task
// has ended, and the second reads the task. Then Result waits for the next end. If the task itself
// is lost, Result returns ErrNotFound.
func TestResultAfterASetBack(t *testing.T) {
	for _, flush := range []bool{false, true} {
		admin := redistest.Start(t).Client(t)
		whole, err := openAs(admin, queue.AccessAll, quiet)
		if err != nil {
			t.Fatal(err)
		}
		id := must[queue.Receipt](t)(whole.Enqueue(t.Context(), queue.Task{Kind: "k"})).ID
		keys := admin.Keys(t.Context(), "*").Val()
		var dumps []string
		for _, key := range keys {
			dumps = append(dumps, admin.Dump(t.Context(), key).Val())
		}
		must[queue.Cancellation](t)(whole.Cancel(t.Context(), id, "first"))

		var lost atomic.Bool
		var calls atomic.Int64
		rdb := redis.NewClient(&redis.Options{Addr: admin.Options().Addr})
		defer rdb.Close()
		q, err := openAs(rdb, queue.AccessAll, quiet)
		if err != nil {
			t.Fatal(err)
		}
		rdb.AddHook(queuetest.Around{Name: "fcall", After: func(error) {}, Before: func() {
			if calls.Add(1) != 2 { // the first call sees that the task has ended, the second reads it
				return
			}
			admin.FlushDB(context.Background())
			for i, key := range keys {
				if !flush {
					admin.Restore(context.Background(), key, 0, dumps[i])
				}
			}
			lost.Store(true)
		}})
		got := make(chan error, 1)
		go func() { _, err := q.Result(t.Context(), id); got <- err }()
		await.Until(t, "the end is lost", lost.Load)
		want := refusal.ErrNoNamespace
		if !flush {
			want = refusal.ErrCancelled
			if r := must[*queue.Record](t)(whole.Get(t.Context(), id)); r.Status != queue.Pending {
				t.Fatalf("the task is %s, want PENDING", r.Status)
			} else if _, err := r.Outcome(); !errors.Is(err, refusal.ErrNotEnded) {
				t.Errorf("Outcome = %v, want ErrNotEnded", err)
			}
			must[queue.Cancellation](t)(whole.Cancel(t.Context(), id, "second"))
		}
		if err := await.Receive(t, got, "Result returns"); !errors.Is(err, want) || !flush && !strings.Contains(err.Error(), "second") {
			t.Errorf("Result = %v, want %v", err, want)
		}
	}
}

// An agent is cancelled before it gets the reply to its suspend. Its wait returns ErrCancelled, not
// an error of Redis.
func TestAnAgentThatIsCancelledWhileItBeginsToWait(t *testing.T) {
	server := redistest.Start(t)
	proxy := faultproxy.Start(t, server.Addr)
	q, err := openAs(connect(t, "redis://"+proxy.Addr), queue.AccessAll, quiet)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	w := worker.New(q, worker.Config{Beat: 50 * time.Millisecond})
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ string) (string, error) {
		var many []*agentwait.Future[string]
		for range 500 {
			many = append(many, agentwait.Schedule[string](a, nil, queue.Task{Kind: "nobody", Queue: "other"}))
		}
		_, err := agentwait.JoinAll(a, many...)
		got <- err
		return "", err
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	held := proxy.Hold(faultproxy.Script(q.Engine().Library().Handle("suspend")))
	defer proxy.Release()
	id := must[queue.Receipt](t)(q.Enqueue(t.Context(), queue.Task{Kind: "agent"})).ID
	held.Await(t)
	direct, err := openAs(server.Client(t), queue.AccessAll, quiet)
	if err != nil {
		t.Fatal(err)
	}
	must[queue.Cancellation](t)(direct.Cancel(t.Context(), id, "enough"))
	if err := await.Receive(t, got, "the wait returns"); !errors.Is(err, refusal.ErrCancelled) || errors.Is(err, refusal.ErrUnknown) {
		t.Errorf("the wait = %v, want the cancellation", err)
	}
	proxy.Release()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}
