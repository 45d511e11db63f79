package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// held holds the first script back until it is released, and then sends it whatever its context says, like a
// connection that is slow to write.
type held struct {
	queuetest.Around // for the other methods of a hook
	reached, release chan struct{}
	sent             chan error
}

func hold(rdb redis.UniversalClient) *held {
	h := &held{reached: make(chan struct{}, 1), release: make(chan struct{}), sent: make(chan error, 1)}
	rdb.AddHook(h)
	return h
}

func (h *held) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		select {
		case <-h.release:
			return next(ctx, cmd)
		default:
		}
		if !lua.IsVerb(cmd.Name()) {
			return next(ctx, cmd)
		}
		h.reached <- struct{}{}
		<-h.release
		err := next(context.WithoutCancel(ctx), cmd)
		h.sent <- err
		return err
	}
}

// A call whose context ends returns while its request is still being sent. The caller then reuses its memory.
func TestACallThatHasReturnedDoesNotReadTheCallersMemory(t *testing.T) {
	for claim, call := range map[string]func(context.Context, *queue.Queue, string, []byte) (string, error){
		"Enqueue": func(ctx context.Context, q *queue.Queue, _ string, b []byte) (string, error) {
			r, err := q.Enqueue(ctx, queue.Task{Kind: "k", Payload: b})
			return r.ID, err
		},
		"EnqueueAll": func(ctx context.Context, q *queue.Queue, _ string, b []byte) (string, error) {
			all, err := q.EnqueueAll(ctx, []queue.Task{{Kind: "k", Payload: b}})
			return all[0].ID, err
		},
		"Resolve": func(ctx context.Context, q *queue.Queue, promise string, b []byte) (string, error) {
			_, err := q.Resolve(ctx, promise, b)
			return promise, err
		},
	} {
		t.Run(claim, func(t *testing.T) {
			rdb, err := queue.Connect("redis://" + redistest.Shared(t).Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer rdb.Close()
			q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
			promise := queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
			h := hold(rdb)
			var memory []byte
			type answer struct {
				id  string
				err error
			}
			var got answer
			for limit, begun := 50*time.Millisecond, false; !begun; limit *= 4 { // a busy machine may not begin the request in time
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				memory = []byte("first")
				answered := make(chan answer, 1)
				go func() {
					id, err := call(ctx, q, promise, memory)
					answered <- answer{id, err}
				}()
				got = await.Receive(t, answered, "the call returns")
				if !errors.Is(got.err, refusal.ErrUnknown) && !errors.Is(got.err, context.DeadlineExceeded) {
					t.Fatalf("the call = %v", got.err)
				}
				begun = len(h.reached) > 0
			}
			copy(memory, "other")
			close(h.release)
			if err := await.Receive(t, h.sent, "the reply"); err != nil {
				t.Fatal(err)
			}
			r, err := q.Get(t.Context(), got.id)
			if err != nil {
				t.Fatal(err)
			}
			if stored := fmt.Sprintf("%s%s", r.Payload, r.Result); stored != "first" {
				t.Errorf("%q is stored, want what the caller gave", stored)
			}
		})
	}
}

// mute holds every script back until its context ends.
type mute struct {
	queuetest.Around // for the other methods of a hook
	entered          atomic.Int32
}

func (m *mute) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !lua.IsVerb(cmd.Name()) {
			return next(ctx, cmd)
		}
		m.entered.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
}

// A client with four connections to a server has at most three calls under way there. The others were certainly not
// sent, so their outcome is not unknown.
func TestTheOutcomeOfACallThatIsNotSentIsKnown(t *testing.T) {
	for claim, connect := range map[string]func() redis.UniversalClient{
		"one server": func() redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr, PoolSize: 4, ContextTimeoutEnabled: true})
		},
		"a cluster of one node": func() redis.UniversalClient {
			slots := []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: redistest.Shared(t).Addr}}}}
			return redis.NewClusterClient(&redis.ClusterOptions{PoolSize: 4, ContextTimeoutEnabled: true,
				ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }})
		},
	} {
		t.Run(claim, func(t *testing.T) {
			rdb := connect()
			defer rdb.Close()
			q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: 8})
			hook := &mute{}
			rdb.AddHook(hook)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var unknown atomic.Int32
			var group sync.WaitGroup
			for i := range 24 {
				group.Go(func() {
					_, err := q.Cancel(ctx, fmt.Sprintf("%d-a", i%8), "")
					if errors.Is(err, refusal.ErrUnknown) {
						unknown.Add(1)
					} else if !errors.Is(err, context.Canceled) {
						t.Errorf("Cancel = %v", err)
					}
				})
			}
			await.Until(t, "three calls are sent", func() bool { return hook.entered.Load() >= 3 })
			time.Sleep(50 * time.Millisecond) // sleeps: for those that are not to be sent
			cancel()
			group.Wait()
			if sent, lost := hook.entered.Load(), unknown.Load(); sent != 3 || lost > sent {
				t.Errorf("%d calls were sent, and %d have an unknown outcome, want 3 and at most 3", sent, lost)
			}
		})
	}
}
