package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// calls returns the calls of a client, for a live task.
func calls(q *queue.Queue, id string) map[string]func(context.Context) error {
	task := queue.Task{Kind: "k"}
	return map[string]func(context.Context) error{
		"Open": func(ctx context.Context) error {
			_, err := queue.Open(ctx, q.Client(), queue.Config{Namespace: q.Namespace(), Logger: slog.New(slog.DiscardHandler)})
			return err
		},
		"Enqueue":    func(ctx context.Context) error { _, err := q.Enqueue(ctx, task); return err },
		"EnqueueAll": func(ctx context.Context) error { _, err := q.EnqueueAll(ctx, []queue.Task{task}); return err },
		"Get":        func(ctx context.Context) error { _, err := q.Get(ctx, id); return err },
		"GetAll":     func(ctx context.Context) error { _, err := q.GetAll(ctx, []string{id}); return err },
		"Cancel":     func(ctx context.Context) error { _, err := q.Cancel(ctx, id, ""); return err },
		"CancelAll":  func(ctx context.Context) error { _, err := q.CancelAll(ctx, []string{id}, ""); return err },
		"Delete":     func(ctx context.Context) error { _, err := q.Delete(ctx, id); return err },
		"DeleteAll":  func(ctx context.Context) error { _, err := q.DeleteAll(ctx, []string{id}); return err },
		"Result":     func(ctx context.Context) error { _, err := q.Result(ctx, id); return err },
		"Stats":      func(ctx context.Context) error { _, err := q.Stats(ctx); return err },
		"Figures":    func(ctx context.Context) error { _, err := inspect.Figures(ctx, q); return err },
		"Sweeps":     func(ctx context.Context) error { _, err := inspect.Sweeps(ctx, q); return err },
		"List":       func(ctx context.Context) error { _, err := inspect.List(ctx, q, inspect.Filter{}, "", 1); return err },
		"Audit":      func(ctx context.Context) error { _, err := inspect.Audit(ctx, q); return err },
		"Fetch": func(ctx context.Context) error {
			_, err := claim.Of(q).Fetch(ctx, 0, "w", claim.Ask{N: 1, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 1}}})
			return err
		},
		"Settle": func(ctx context.Context) error {
			_, err := claim.Of(q).Settle(ctx, 0, "w", queue.NewCall(), []queue.Outcome{{ID: id, Verb: queue.Release}}, claim.Ask{})
			return err
		},
		"Heartbeat": func(ctx context.Context) error {
			_, err := claim.Of(q).Heartbeat(ctx, 0, "w", time.Minute, 0, nil)
			return err
		},
		"Sweep": func(ctx context.Context) error { _, err := reaper.Sweep(ctx, q, 0, "r", 1, time.Second); return err },
		"Await": func(ctx context.Context) error {
			_, err := claim.Of(q).WakeLine(0, []string{"empty"}).Await(ctx, 10*time.Second)
			return err
		},
	}
}

func TestACancelledContextChangesNothing(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		over := errors.New("no longer needed")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(over)
		for name, call := range calls(q, id) {
			t.Run(name, func(t *testing.T) {
				before := redistest.Dump(t, rdb, "curfew:")
				for range 20 { // a select chooses among ready cases at random
					err := call(ctx)
					if !errors.Is(err, context.Canceled) && !errors.Is(err, over) {
						t.Fatalf("error %v, want the context's", err)
					}
					if strings.Contains(err.Error(), "\n") {
						t.Errorf("the error has several lines: %q", err)
					}
				}
				// Redis runs a call on the same connection after all that was sent before.
				enqueueAndCancel(t, q)
				diff := redistest.Diff(before, redistest.Dump(t, rdb, "curfew:"))
				if stats, err := q.Stats(context.Background()); err != nil || stats.Queues[0].Ready != 1 {
					t.Errorf("%d tasks are ready, %v, want 1 as before\n%s", stats.Queues[0].Ready, err, diff)
				}
			})
		}
	})
}

func enqueueAndCancel(t *testing.T, q *queue.Queue) {
	t.Helper()
	id := queuetest.Enqueue(t, q, queue.Task{}).ID
	if c, err := q.Cancel(context.Background(), id, ""); err != nil || !c.Done {
		t.Fatalf("the next good call: Cancel = %+v, %v", c, err)
	}
}

// A server that hangs does not reply, but its port still accepts connections. So only the context
// ends a call. With a client of Connect the call ends with its context. With another client it ends
// when the read does: after a second (call.go), or after the client's ReadTimeout.
func TestAContextEndsWhileRedisHangs(t *testing.T) {
	server := redistest.Start(t)
	rdb, err := queue.Connect("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := queuetest.Open(t, rdb, queue.Config{})
	id := queuetest.Enqueue(t, q, queue.Task{}).ID

	// Result checks the task at once, and again because its subscription is new.
	looked := make(chan struct{}, 2)
	rdb.AddHook(queuetest.Around{Name: "fcall", After: func(err error) {
		if err != nil {
			return // the server did not have the library yet
		}
		select {
		case looked <- struct{}{}:
		default: // a later call
		}
	}})
	waiting, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { _, err := q.Result(waiting, id); result <- err }()
	for range 2 {
		await.Receive(t, looked, "Result checks the task")
	}

	server.Pause()
	cancel()
	if err := await.Receive(t, result, "Result returns"); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiting Result = %v, want context.Canceled", err)
	}
	t.Run("calls", func(t *testing.T) {
		for name, call := range calls(q, id) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				defer cancel()
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v, want context.DeadlineExceeded", err)
				}
			})
		}
	})
	server.Resume()
	if _, err := q.Get(context.Background(), id); err != nil {
		t.Errorf("the next good call: %v", err)
	}
}

// dialsOf signals each connection that a client could not make.
type dialsOf struct{ failed chan struct{} }

func (d dialsOf) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			select {
			case d.failed <- struct{}{}:
			default: // nobody waits for it
			}
		}
		return conn, err
	}
}
func (d dialsOf) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (d dialsOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A caller whose context ends while Redis refuses connections learns that it does. go-redis makes them in the background, so it
// returns the error of the context alone.
func TestAContextThatEndsWhileRedisIsAwayNamesTheCause(t *testing.T) {
	for _, client := range []struct {
		name string
		make func(addr string) redis.UniversalClient
	}{
		{"one server", func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
		}},
		{"without ContextTimeoutEnabled", func(addr string) redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr}) }},
	} {
		t.Run(client.name, func(t *testing.T) {
			server := redistest.Start(t)
			rdb := client.make(server.Addr)
			defer rdb.Close()
			failed := make(chan struct{})
			rdb.AddHook(dialsOf{failed})
			q := queuetest.Open(t, rdb, queue.Config{})
			id := queuetest.Enqueue(t, q, queue.Task{}).ID
			server.Kill()
			for name, call := range calls(q, id) {
				for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
					t.Run(name+", "+end.Error(), func(t *testing.T) {
						ctx := &endingContext{Context: context.Background(), end: end, done: make(chan struct{}), asked: make(chan struct{}, 1)}
						returned := make(chan error, 1)
						go func() { returned <- call(ctx) }()
						await.Receive(t, ctx.asked, "the call has begun")
						var err error
						for range 2 { // the first one is known to the client when the second one is refused
							select {
							case <-failed:
							case err = <-returned:
							}
						}
						close(ctx.done)
						if err == nil {
							err = await.Receive(t, returned, "the call returns")
						}
						if !strings.Contains(err.Error(), "connection refused") {
							t.Errorf("the error does not name the cause: %v", err)
						}
						if !errors.Is(err, end) && !errors.Is(err, refusal.ErrUnavailable) {
							t.Errorf("the error is neither that of the context nor ErrUnavailable: %v", err)
						}
						if errors.Is(err, refusal.ErrUnknown) {
							t.Errorf("the outcome of a call that was never sent is unknown: %v", err)
						}
					})
				}
			}
		})
	}
}

// endingContext ends when done is closed, also as a context whose deadline has passed.
type endingContext struct {
	context.Context
	end   error
	done  chan struct{}
	asked chan struct{} // signalled when the context is used
}

func (c *endingContext) Done() <-chan struct{} {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	return c.done
}

func (c *endingContext) Err() error {
	select {
	case <-c.done:
		return c.end
	default:
		return nil
	}
}

func (c *endingContext) Deadline() (time.Time, bool) {
	return time.Now().Add(time.Hour), c.end == context.DeadlineExceeded
}

// untilWatched returns when a caller waits for the result of a task.
func untilWatched(t *testing.T, rdb redis.UniversalClient, q *queue.Queue, id string) {
	t.Helper()
	await.Until(t, id+" is watched", func() bool {
		return strings.Contains(rdb.Get(context.Background(), q.Root(queuetest.Partition(t, id))+":state:"+id).Val(), "\nwatched=1\n")
	})
}
