package worker_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestRedisIsRestarted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	s := newStage(t, server.Client(t), 2)
	w := worker.New(s.q, worker.Config{})
	var done atomic.Int64
	w.HandleRaw("noop", raw(func(context.Context) error { done.Add(1); return nil }))
	began, release := make(chan struct{}, 1), make(chan struct{})
	w.HandleRaw("long", raw(func(context.Context) error { began <- struct{}{}; <-release; return nil }))
	s.run(w)
	long := s.enqueue(queue.Task{Kind: "long"})
	receive(t, began)

	for range 2 {
		server.Kill()
		time.Sleep(1500 * time.Millisecond) // sleeps: an outage that is long enough for every back-off to grow
		server.Restart(t)
		before := done.Load()
		s.enqueueAll(queue.Task{Kind: "noop"}, queue.Task{Kind: "noop"})
		await.Until(t, "new work is done", func() bool { return done.Load() == before+2 })
	}
	close(release)
	if r := s.ended(long); r.Status != queue.Completed {
		t.Errorf("the task that ran during the outage is %s: %s", r.Status, r.Error)
	}
	if n := s.logs.Count("level=ERROR"); n > 12 {
		t.Errorf("%d errors were logged, want 12 at most", n)
	}
}

// The outcome of a handler that returns while Redis is away is reported when Redis is back.
func TestOutcomesSurviveAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	s := newStage(t, server.Client(t), 1)
	w := worker.New(s.q, worker.Config{})
	began, release := make(chan struct{}, 1), make(chan struct{})
	w.HandleRaw("long", raw(func(context.Context) error { began <- struct{}{}; <-release; return nil }))
	id := s.enqueue(queue.Task{Kind: "long"})
	s.run(w)
	receive(t, began)
	server.Kill()
	close(release)
	time.Sleep(500 * time.Millisecond) // sleeps: the outage
	server.Restart(t)
	r := s.ended(id)
	if r.Status != queue.Completed || r.Epoch != 1 {
		t.Errorf("the task is %s after %d claims, want COMPLETED by the first", r.Status, r.Epoch)
	}
}

func TestAnIdleWorkerDoesNotPoll(t *testing.T) {
	t.Parallel()
	const partitions = 4
	s := newStage(t, redistest.Start(t).Client(t), partitions)
	w := worker.New(s.q, worker.Config{})
	ran := make(chan struct{}, 1)
	w.HandleRaw("noop", raw(func(context.Context) error { ran <- struct{}{}; return nil }))
	s.run(w)
	s.enqueue(queue.Task{Kind: "noop"})
	receive(t, ran)

	calls := func() int64 {
		var sum int64
		for line := range strings.Lines(s.rdb.Info(s.ctx, "commandstats").Val()) {
			// These are the calls of clients. Scripts call none of them.
			for _, name := range []string{"fcall", "evalsha", "eval", "blpop", "ping", "subscribe"} {
				if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
					digits, _, _ := strings.Cut(rest, ",")
					var n int64
					for _, d := range digits {
						n = 10*n + int64(d-'0')
					}
					sum += n
				}
			}
		}
		return sum
	}
	before, start := calls(), time.Now()
	time.Sleep(3 * time.Second) // sleeps: the test measures a rate
	each := float64(calls()-before) / time.Since(start).Seconds() / partitions
	t.Logf("idle: %.1f calls a second and partition", each)
	if each > 6 {
		t.Errorf("an idle worker makes %.1f calls a second and partition, want 6 at most: about one fetch, one wait and two sweeps", each)
	}
}

func TestShutdownWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	s := newStage(t, server.Client(t), 1)
	w := worker.New(s.q, worker.Config{ShutdownTimeout: 100 * time.Millisecond})
	w.HandleRaw("noop", raw(func(context.Context) error { return nil }))
	stop := s.run(w)
	s.enqueue(queue.Task{Kind: "noop"})
	await.Until(t, "the task is completed", func() bool { return w.Stats().Completed == 1 })
	server.Kill()
	stop() // checks that Run returns
}

// Another program has written to one of our keys, so Redis raises errors. The worker continues when
// the key is deleted.
func TestTheWorkerContinuesAfterErrorsOfRedis(t *testing.T) {
	t.Parallel()
	s := newStage(t, shared(t), 1)
	w := worker.New(s.q, worker.Config{})
	began, release := make(chan struct{}, 1), make(chan struct{})
	w.HandleRaw("long", raw(func(context.Context) error { began <- struct{}{}; <-release; return nil }))
	w.HandleRaw("noop", raw(func(context.Context) error { return nil }))
	s.run(w)
	s.enqueue(queue.Task{Kind: "long"})
	receive(t, began)
	key := s.q.Root(0) + ":claims:" + w.ID()
	s.rdb.Set(s.ctx, key, "not ours", 0)
	close(release)
	id := s.enqueue(queue.Task{Kind: "noop"})
	await.Until(t, "an error is logged", func() bool { return s.logs.Count("level=ERROR") > 0 })
	s.rdb.Del(s.ctx, key)
	if r := s.ended(id); r.Status != queue.Completed {
		t.Errorf("after the key is deleted a task is %s: %s", r.Status, r.Error)
	}
}

// hook is called for each command that the client sends to Redis.
type hook func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, cmd, next) }
}

func hooked(t *testing.T, h hook) *redis.Client {
	rdb := redistest.Shared(t).Client(t)
	rdb.AddHook(h)
	return rdb
}

// has reports whether a command calls a script with this argument.
func has(cmd redis.Cmder, s string) bool {
	return slices.Contains([]string{"fcall", "evalsha", "eval"}, cmd.Name()) && slices.ContainsFunc(cmd.Args(), func(arg any) bool {
		b, ok := arg.([]byte)
		return arg == s || ok && string(b) == s
	})
}

// Run stores the defaults of kinds before it starts. If Redis is away it tries again, until its context
// ends.
func TestRunStoresDefaultsWhenRedisIsBack(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	var tries atomic.Int64
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if !away.Load() || !has(cmd, "with-defaults") {
			return next(ctx, cmd)
		}
		// A call that gets no reply, and whose repeat is not let in, gives up at once: its outcome is unknown.
		err := error(io.EOF)
		if tries.Add(1)%2 == 0 {
			err = raised("WRONGPASS invalid username-password pair")
		}
		cmd.SetErr(err)
		return err
	})
	s := newStage(t, shared(t), 1)
	q, err := queue.Open(s.ctx, rdb, queue.Config{Namespace: s.q.Namespace()})
	if err != nil {
		t.Fatal(err)
	}
	run := func() (stop func()) {
		w := worker.New(q, worker.Config{NoReaper: true, Logger: s.q.Logger()})
		w.HandleRaw("with-defaults", done)
		w.Defaults("with-defaults", queue.Defaults{MaxRetries: 3})
		return s.run(w)
	}
	id := s.enqueue(queue.Task{Kind: "with-defaults"})
	away.Store(true)
	stop := run()
	await.Until(t, "Run has tried twice", func() bool { return tries.Load() >= 4 })
	stop() // checks that Run returns nil
	before := tries.Load()
	run()
	await.Until(t, "another Run has tried", func() bool { return tries.Load() >= before+2 })
	away.Store(false)
	s.ended(id)
	if kinds, err := s.q.Kinds(s.ctx); err != nil || kinds["with-defaults"]["max_retries"] != "3" {
		t.Errorf("Kinds = %v, %v, want max_retries 3", kinds, err)
	}
	if n := s.logs.Count("could not be stored"); n < 1 || n > 2 {
		t.Errorf("%d errors were logged, want one of each worker", n)
	}
}

// One partition hangs after it got the only slot for a fetch. The other partition gets the slot.
func TestAPartitionThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	var root atomic.Value
	var hangs atomic.Bool
	hung := make(chan struct{}, 1000)
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if hangs.Load() && has(cmd, root.Load().(string)) {
			hung <- struct{}{}
			<-ctx.Done()
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
		return next(ctx, cmd)
	})
	s := newStage(t, shared(t), 2)
	root.Store(s.q.Root(0))
	q, err := queue.Open(s.ctx, rdb, queue.Config{Namespace: s.q.Namespace()})
	if err != nil {
		t.Fatal(err)
	}
	q.Engine().SetTryFor(engine.TryFor)
	w := worker.New(q, worker.Config{Concurrency: 1, NoReaper: true, Lease: time.Minute})
	ran := make(chan struct{}, 1)
	w.HandleRaw("noop", raw(func(context.Context) error { ran <- struct{}{}; return nil }))
	s.run(w)
	for p := range 2 {
		s.enqueueIn(p, "default", "noop")
		receive(t, ran)
	}
	hangs.Store(true)
	s.enqueueIn(0, "default", "noop")
	receive(t, hung)
	s.enqueueIn(1, "default", "noop")
	receive(t, ran)
	hangs.Store(false)
	receive(t, ran)
	await.Until(t, "all are completed", func() bool { return w.Stats().Completed == 4 })
}

// The blocking call that waits for work does not return, as on a half-open connection. The worker
// does not wait for it any longer than requested.
func TestABlockingCallThatHangsStopsNoTask(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if cmd.Name() == "blpop" {
			<-release
		}
		return next(ctx, cmd)
	})
	s := newStage(t, rdb, 1)
	w := worker.New(s.q, worker.Config{})
	ran := make(chan struct{}, 1)
	w.HandleRaw("noop", raw(func(context.Context) error { ran <- struct{}{}; return nil }))
	s.run(w)
	t.Cleanup(func() { close(release) })
	for range 3 {
		s.enqueue(queue.Task{Kind: "noop"})
		receive(t, ran)
	}
}

// raised is an error reply of Redis, as for a script that fails.
type raised string

func (r raised) Error() string { return string(r) }
func (r raised) RedisError()   {}

// Redis refuses every request with one bad outcome. It must accept the other outcomes, and the worker
// must stop sending the bad one.
func TestAPoisonOutcomeIsSingledOut(t *testing.T) {
	t.Parallel()
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if has(cmd, "poison") {
			cmd.SetErr(raised("ERR the script hit a bug"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	})
	s := newStage(t, rdb, 1)
	w := worker.New(s.q, worker.Config{Concurrency: 8, Lease: time.Minute})
	ready := sync.WaitGroup{}
	ready.Add(8)
	w.HandleRaw("any", func(ctx context.Context, _ []byte) ([]byte, error) {
		ready.Done()
		ready.Wait()
		return []byte(worker.Info(ctx).Headers["result"]), nil
	})
	var tasks []queue.Task
	for i := range 8 {
		tasks = append(tasks, queue.Task{Kind: "any", Headers: map[string]string{"result": map[bool]string{true: "poison", false: "good"}[i == 3]}})
	}
	ids := s.enqueueAll(tasks...)
	s.run(w)
	for i, id := range ids {
		if i != 3 {
			if r := s.ended(id); string(r.Result) != "good" {
				t.Errorf("a good task is %s with result %q, want %q", r.Status, r.Result, "good")
			}
		}
	}
	await.Until(t, "the bad outcome is dropped", func() bool { return w.Stats().Dropped == 1 })
	if got := w.Stats(); got.Completed != 7 || got.Started != 8 {
		t.Errorf("Stats = %+v, want 7 completed of 8 started", got)
	}
}

// A fetch is under way when the worker must stop. The worker gives back the tasks of its reply.
func TestTasksFetchedDuringShutdownAreGivenBack(t *testing.T) {
	t.Parallel()
	var held atomic.Bool
	release := make(chan struct{})
	fetched := make(chan struct{}, 10)
	rdb := hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if held.Load() && strings.Contains(fmt.Sprint(cmd), "handed-out-late") {
			fetched <- struct{}{}
			<-release
		}
		return err
	})
	s := newStage(t, rdb, 1)
	w := worker.New(s.q, worker.Config{})
	var ran atomic.Int64
	w.HandleRaw("handed-out-late", raw(func(context.Context) error { ran.Add(1); return nil }))
	id := s.enqueue(queue.Task{Kind: "handed-out-late"})
	held.Store(true)
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	receive(t, fetched)
	cancel()
	time.Sleep(100 * time.Millisecond) // sleeps: there is no signal that Run has noticed
	close(release)
	if err := receive(t, ended); err != nil {
		t.Error(err)
	}
	if r := s.record(id); ran.Load() != 0 || r.Status != queue.Pending || r.Retries+r.LeaseLosses != 0 {
		t.Errorf("the task ran %d times and is %s, want 0 and PENDING, with no retry spent", ran.Load(), r.Status)
	}
	s.noTrace()
}
