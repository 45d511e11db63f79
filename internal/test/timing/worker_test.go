package timing_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// crew is a namespace on its own server, in which idle workers wait up to ten seconds for a wake token.
type crew struct {
	*harness.Stage
	server *redistest.Server
	ran    chan string // receives the name of a worker that begins a task of kind quick
}

func newCrew(t *testing.T, partitions int) *crew {
	t.Helper()
	server := redistest.Start(t)
	c := &crew{harness.New(t, server.Addr, queue.Config{Partitions: partitions}), server, make(chan string, 1000)}
	// The more workers there are, the longer each waits before it looks by itself.
	for p := range partitions {
		var leases []redis.Z
		for i := range 200 {
			leases = append(leases, redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: fmt.Sprint("other", i)})
		}
		if err := c.Redis.ZAdd(t.Context(), c.Q.Root(p)+":workers", leases...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// work runs a worker, whose stop returns when it has ended.
func (c *crew) work(name string, config worker.Config) (stop func()) {
	config.NoReaper = true
	w := worker.New(c.Another(), config)
	w.HandleRaw("quick", func(context.Context, []byte) ([]byte, error) { c.ran <- name; return nil, nil })
	return c.Run(w.Run)
}

// blocked waits until this number of clients are in a blocking call.
func (c *crew) blocked(n int) {
	c.Helper()
	await.Until(c.T, "the workers wait for work", func() bool {
		return strings.Contains(c.Redis.Info(c.Context(), "clients").Val(), fmt.Sprintf("blocked_clients:%d\r", n))
	})
}

// steal makes a client wait for the wake tokens of a queue before all workers that begin to wait later, so that it takes one and no
// worker looks for the task. It returns the number of clients that wait.
func (c *crew) steal(line string) int {
	c.Helper()
	thief := c.server.Client(c.T)
	go thief.BLPop(c.Context(), time.Minute, c.Key("wake:"+line))
	c.blocked(1)
	return 1
}

func TestWorkWakesAnIdleWorker(t *testing.T) {
	const within = 200 * time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		c := newCrew(t, 1)
		waiting := 1
		if planted {
			waiting += c.steal("default")
		}
		stop := c.work("idle", worker.Config{})
		defer stop()
		return longest(10, within, func() time.Duration {
			c.blocked(waiting)
			c.Enqueue(queue.Task{Kind: "quick"})
			return upTo(c.ran, 20*within)
		})
	})
}

// A worker that takes a wake token but has no free slot passes the token on to another worker.
func TestAWorkerWithoutSlotsWakesAnother(t *testing.T) {
	const within = 300 * time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		c := newCrew(t, 2)
		began, release := make(chan struct{}, 1), make(chan struct{})
		link := faultproxy.Start(t, c.Addr)
		full := worker.New(c.AnotherAt(link.Addr), worker.Config{Concurrency: 1, Queues: map[string]int{"its_own": 1, "common": 1}, NoReaper: true})
		full.HandleRaw("long", func(context.Context, []byte) ([]byte, error) { began <- struct{}{}; <-release; return nil, nil })
		full.HandleRaw("quick", func(context.Context, []byte) ([]byte, error) { c.ran <- "full"; return nil, nil })
		stopFull := c.Run(full.Run)
		c.blocked(2)
		stopIdle := c.work("idle", worker.Config{Queues: map[string]int{"common": 1}})
		c.blocked(4)
		// Redis wakes the client that has waited longest: the full one, in the second partition.
		c.enqueueIn(0, "its_own", "long")
		await.Receive(t, began, "the worker is full")
		link.Partition(planted) // then it takes the token, and cannot pass it on
		c.enqueueIn(1, "common", "quick")
		lag := upTo(c.ran, 10*within)
		link.Partition(false)
		close(release)
		stopIdle()
		stopFull()
		return lag
	})
}

// enqueueIn enqueues a task in a partition.
func (c *crew) enqueueIn(partition int, line, kind string) {
	c.Helper()
	key := rand.Text()
	for names.PartitionOfKey(key, c.Q.Partitions()) != partition {
		key = rand.Text()
	}
	c.Enqueue(queue.Task{Kind: kind, Queue: line, IdempotencyKey: key})
}

// A worker that stops while a wake token comes passes it on or does not take it.
func TestNoTokenIsLostWhenWorkersStop(t *testing.T) {
	const within = 500 * time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		c := newCrew(t, 1)
		q := c.Another() // workers of a process that share a client share a blocking call
		begin := func() (stop func()) {
			w := worker.New(q, worker.Config{NoReaper: true})
			w.HandleRaw("quick", func(context.Context, []byte) ([]byte, error) { c.ran <- ""; return nil, nil })
			return c.Run(w.Run)
		}
		return longest(harness.Times(10, 20, 200), within, func() time.Duration {
			waiting := 1
			if planted {
				waiting += c.steal("default")
			}
			leaves, stays := begin(), begin()
			c.blocked(waiting)
			var group sync.WaitGroup
			group.Go(leaves)
			harness.Pass(mathrand.N(2 * time.Millisecond)) // the task comes at a random instant of the stop
			c.Enqueue(queue.Task{Kind: "quick"})
			lag := upTo(c.ran, 10*within)
			group.Wait()
			stays()
			return lag
		})
	})
}

// An idle worker waits up to ten seconds for work. It stops at once even so.
func TestAnIdleWorkerStopsAtOnce(t *testing.T) {
	const within = 300 * time.Millisecond
	c := newCrew(t, 1)
	timing.Keep(t, c.Addr, within, func(planted bool) time.Duration {
		c.blocked(0)
		link := faultproxy.Start(t, c.Addr)
		w := worker.New(c.AnotherAt(link.Addr), worker.Config{NoReaper: true})
		w.HandleRaw("quick", func(context.Context, []byte) ([]byte, error) { return nil, nil })
		stop := c.Run(w.Run)
		c.blocked(1)
		if planted {
			link.Partition(true)
		}
		start := time.Now()
		stop()
		return time.Since(start)
	})
}

func TestCancelReachesAHandlerAtOnce(t *testing.T) {
	const within = 100 * time.Millisecond
	s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
	timing.Keep(t, s.Addr, within, func(planted bool) time.Duration {
		link := faultproxy.Start(t, s.Addr)
		if planted {
			link.Hold(faultproxy.Command("subscribe")) // so that the worker learns of it with a heartbeat
		}
		w := worker.New(s.AnotherAt(link.Addr), worker.Config{Lease: time.Minute, Beat: 2 * time.Second, NoReaper: true})
		began, causes := make(chan struct{}, 1), make(chan error, 1)
		w.HandleRaw("hang", func(ctx context.Context, _ []byte) ([]byte, error) {
			began <- struct{}{}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil, ctx.Err()
		})
		stop := s.Run(w.Run)
		lag := longest(5, within, func() time.Duration {
			id := s.Enqueue(queue.Task{Kind: "hang"})[0]
			await.Receive(t, began, "the handler begins")
			start := time.Now()
			if _, err := s.Q.Cancel(t.Context(), id, ""); err != nil {
				t.Fatal(err)
			}
			if cause := await.Receive(t, causes, "the handler's context ends"); !errors.Is(cause, worker.ErrCancelled) {
				t.Errorf("the cause is %v, want ErrCancelled", cause)
			}
			return time.Since(start)
		})
		link.Release()
		stop()
		return lag
	})
}

// The tasks of a worker that died run again when its lease and a fall-back are over.
func TestTasksOfADeadWorkerRunAgain(t *testing.T) {
	const lease = time.Second
	const within = lease + fallback + 200*time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
		link := faultproxy.Start(t, s.Addr)
		config := worker.Config{Concurrency: 8, Lease: lease, NoReaper: true}
		if planted {
			config.Lease = time.Minute
		}
		began, again, release := make(chan struct{}, 8), make(chan struct{}, 8), make(chan struct{})
		w := worker.New(s.AnotherAt(link.Addr), config)
		w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { began <- struct{}{}; <-release; return nil, nil })
		stop := s.Run(w.Run)
		s.Enqueue(slices.Repeat([]queue.Task{{Kind: "k"}}, 8)...)
		for range 8 {
			await.Receive(t, began, "the worker runs all tasks")
		}
		other := worker.New(s.Another(), worker.Config{Concurrency: 8})
		other.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { again <- struct{}{}; return nil, nil })
		stopOther := s.Run(other.Run)
		link.Partition(true)
		start := time.Now()
		for range 8 {
			upTo(again, 3*within-time.Since(start))
		}
		lag := time.Since(start)
		link.Partition(false)
		close(release)
		stop()
		stopOther()
		return lag
	})
}

// A queue whose rate is used up gives out its next task when the rate allows it.
func TestARateIsUsed(t *testing.T) {
	const every, tasks = 20 * time.Millisecond, 15
	const within = 500 * time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
		if _, err := s.Q.LimitRate(t.Context(), "default", queue.Rate{N: 1, Per: every, Burst: 1}); err != nil {
			t.Fatal(err)
		}
		ran := make(chan struct{}, tasks)
		w := worker.New(s.Another(), worker.Config{Concurrency: 10, NoReaper: planted}) // without a reaper, nothing wakes the worker
		w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { ran <- struct{}{}; return nil, nil })
		stop := s.Run(w.Run)
		defer stop()
		s.Enqueue(slices.Repeat([]queue.Task{{Kind: "k"}}, tasks)...)
		await.Receive(t, ran, "the first task")
		start := time.Now()
		for range tasks - 1 {
			await.Receive(t, ran, "another task")
		}
		return time.Since(start) - (tasks-1)*every
	})
}

// A worker ends late tasks one batch after the other, without a pause, although no handler runs and no reaper helps.
func TestLateTasksHoldUpNothing(t *testing.T) {
	const late = 2000
	s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
	makeLate := func() {
		ids := s.Enqueue(slices.Repeat([]queue.Task{{Kind: "k", Timeout: time.Millisecond}}, late)...)
		await.Until(t, "all of them are late", func() bool { return s.Record(ids[late-1]).Overdue })
	}
	byHand := func() time.Duration {
		makeLate()
		start := time.Now()
		for seq := int64(1); ; seq++ {
			reply, err := claim.Of(s.Q).Fetch(t.Context(), 0, rand.Text(), claim.Ask{N: 1, Seq: seq, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 1}}})
			if err != nil {
				t.Fatal(err)
			}
			if reply.Ended == 0 {
				return time.Since(start)
			}
		}
	}
	timing.Compare(t, 4, byHand, func(planted bool) time.Duration {
		ran := make(chan struct{}, 1)
		q := s.Another()
		if planted {
			q.Client().AddHook(waiter(300 * time.Millisecond))
		}
		w := worker.New(q, worker.Config{Concurrency: 1, NoReaper: true})
		w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { ran <- struct{}{}; return nil, nil })
		makeLate()
		s.Enqueue(queue.Task{Kind: "k"})
		start := time.Now()
		stop := s.Run(w.Run)
		await.Receive(t, ran, "the task that has time left")
		took := time.Since(start)
		stop()
		return took
	})
}

// waiter is a hook of a client that waits before each script.
type waiter time.Duration

func (d waiter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (d waiter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (d waiter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if lua.IsVerb(cmd.Name()) {
			<-time.After(time.Duration(d))
		}
		return next(ctx, cmd)
	}
}
