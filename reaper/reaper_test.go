package reaper_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

func TestMain(m *testing.M) {
	// Many tests count what sweeps report. On a busy machine a second is not enough, and a sweep that is given up reports nothing.
	reaper.BePatient(20 * time.Second)
	redistest.AtOnce(8) // these tests wait more than they compute
	redistest.Main(m)
}

func open(t *testing.T, rdb redis.UniversalClient, partitions int) *queue.Queue {
	t.Helper()
	q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: partitions})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// run starts a reaper. stop ends it, and returns when it has ended.
func run(t *testing.T, r *reaper.Reaper) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(await.Limit(t)):
			t.Error("Run did not return")
		}
	})
	t.Cleanup(stop)
	return stop
}

func enqueue(t *testing.T, q *queue.Queue, tasks ...queue.Task) (ids []string) {
	t.Helper()
	receipts, err := q.EnqueueAll(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	return ids
}

func record(t *testing.T, q *queue.Queue, id string) *queue.Record {
	t.Helper()
	r, err := q.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDueTasksEnd(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		t.Parallel()
		q := open(t, rdb, 2)
		var timedOut atomic.Int64
		run(t, reaper.New(q, reaper.Config{Observe: func(_ int, s reaper.Swept) { timedOut.Add(int64(s.TimedOut)) }}))
		var ids []string
		const n = 40
		for i := range n {
			// Each deadline is earlier than all before it, so each enqueue sends an alarm.
			ids = append(ids, enqueue(t, q, queue.Task{Kind: "k", Timeout: time.Duration(400-5*i) * time.Millisecond})...)
		}
		await.Until(t, "all have timed out", func() bool { return timedOut.Load() == n })
		for _, id := range ids {
			if r := record(t, q, id); r.Status != queue.Failed || !r.TimedOut || r.TimeoutType != "execution" || r.Error != "Task exceeded deadline" {
				t.Fatalf("%s is %s of type %q: %s", id, r.Status, r.TimeoutType, r.Error)
			}
		}
	})
}

func TestOtherClocks(t *testing.T) {
	t.Parallel()
	q := open(t, redistest.Shared(t).Client(t), 1)
	ids := enqueue(t, q, queue.Task{Kind: "lost"})
	trip, err := claim.Of(q).Fetch(t.Context(), 0, "gone", claim.Ask{N: 1, Seq: 1, Quotas: []claim.Quota{{Queue: "default", N: 1}}, Lease: 300 * time.Millisecond})
	if err != nil || len(trip.Claims) != 1 {
		t.Fatalf("Fetch = %+v, %v", trip, err)
	}
	ids = append(ids, enqueue(t, q, queue.Task{Kind: "later", Delay: 300 * time.Millisecond}, queue.Task{Kind: "queued", QueueTimeout: 300 * time.Millisecond},
		queue.Task{Kind: "timer", Timer: true, Delay: 300 * time.Millisecond}, queue.Task{Kind: "promise", Promise: true, Timeout: 300 * time.Millisecond})...)
	var mu sync.Mutex
	var sum reaper.Swept
	run(t, reaper.New(q, reaper.Config{Observe: func(_ int, s reaper.Swept) {
		mu.Lock()
		defer mu.Unlock()
		sum.GivenBack += s.GivenBack
		sum.Started += s.Started
		sum.TimedOut += s.TimedOut
		sum.Fired += s.Fired
	}}))
	await.Until(t, "the sweeps have processed each clock", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return sum.GivenBack == 1 && sum.Started == 1 && sum.TimedOut == 2 && sum.Fired == 1
	})
	if r := record(t, q, ids[0]); r.Status != queue.Pending || r.LeaseLosses != 1 {
		t.Errorf("the dead worker's task is %s after %d lost leases, want PENDING after 1", r.Status, r.LeaseLosses)
	}
	if r := record(t, q, ids[1]); r.Status != queue.Pending || !r.AvailableAt.IsZero() {
		t.Errorf("the delayed task is %s, available at %v, want PENDING and available now", r.Status, r.AvailableAt)
	}
	if r := record(t, q, ids[2]); r.Status != queue.Failed || r.TimeoutType != "queue" {
		t.Errorf("the task that no worker took is %s of type %q, want FAILED of type queue", r.Status, r.TimeoutType)
	}
	if r := record(t, q, ids[3]); r.Status != queue.Completed || !r.CompletedAt.Equal(r.CreatedAt.Add(300*time.Millisecond)) {
		t.Errorf("the timer is %s at %v, want COMPLETED 300ms after %v", r.Status, r.CompletedAt, r.CreatedAt)
	}
	if r := record(t, q, ids[4]); r.Status != queue.Failed || r.TimeoutType != "execution" || !r.CompletedAt.Equal(r.Deadline) {
		t.Errorf("the promise is %s of type %q at %v, want FAILED of type execution at %v", r.Status, r.TimeoutType, r.CompletedAt, r.Deadline)
	}
}

// A reaper that has ended a full batch sweeps again at once. With a pause between two batches it would rest for an hour.
func TestAFullBatchIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	q := open(t, redistest.Shared(t).Client(t), 1)
	tasks := make([]queue.Task, 200)
	at := time.Now().Add(300 * time.Millisecond)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Deadline: at}
	}
	enqueue(t, q, tasks...)
	swept := make(chan int, 1000)
	run(t, reaper.New(q, reaper.Config{Batch: 10, Fallback: time.Hour, Observe: func(_ int, s reaper.Swept) { swept <- s.TimedOut }}))
	for sum := 0; sum < len(tasks); {
		n := await.Receive(t, swept, "a sweep")
		if sum += n; n > 10 {
			t.Errorf("a batch had %d tasks, want 10 at most", n)
		}
	}
}

func TestOneOfManyIsPrecise(t *testing.T) {
	t.Parallel()
	q := open(t, redistest.Shared(t).Client(t), 1)
	const reapers = 8
	var turns, others, timedOut atomic.Int64
	var stops []func()
	for range reapers {
		stops = append(stops, run(t, reaper.New(q, reaper.Config{Observe: func(_ int, s reaper.Swept) {
			timedOut.Add(int64(s.TimedOut))
			if s.Turn {
				turns.Add(1)
			} else {
				others.Add(1)
			}
		}})))
	}
	// Cause alarms for two seconds.
	start := time.Now()
	var n int64
	for time.Since(start) < 2*time.Second {
		enqueue(t, q, queue.Task{Kind: "k", Timeout: 10 * time.Millisecond})
		n++
		await.Until(t, "the task has timed out", func() bool { return timedOut.Load() == n })
	}
	took := time.Since(start).Seconds()
	if each := float64(others.Load()) / took / (reapers - 1); each > 3.5 {
		t.Errorf("a reaper without the turn swept %.1f times a second, want about 2", each)
	}
	if turns.Load() < n/2 {
		t.Errorf("the reaper with the turn swept %d times for %d tasks, want at least %d", turns.Load(), n, n/2)
	}

	// The turn only saves cost: the reaper that is left does the work.
	for _, stop := range stops[1:] {
		stop()
	}
	enqueue(t, q, queue.Task{Kind: "k", Timeout: 20 * time.Millisecond})
	await.Until(t, "the last reaper ends the task", func() bool { return timedOut.Load() == n+1 })
}

func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	q := open(t, server.Client(t), 2)
	ids := enqueue(t, q, queue.Task{Kind: "k", Timeout: 4 * time.Second}, queue.Task{Kind: "k", Timeout: 4 * time.Second})
	var log harness.Logs
	sweeps := make(chan struct{}, 1)
	run(t, reaper.New(q, reaper.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Observe: func(int, reaper.Swept) {
		select {
		case sweeps <- struct{}{}:
		default:
		}
	}}))
	await.Receive(t, sweeps, "the reaper sweeps")
	server.Kill()
	await.Until(t, "the outage is logged", func() bool { return strings.Contains(log.String(), "Error timing out expired tasks: ") })
	time.Sleep(2 * time.Second) // sleeps: there must be no more log lines in this time
	if n := strings.Count(log.String(), "level=ERROR"); n > 2 {
		t.Errorf("%d errors were logged for 2 partitions, want one a partition in ten seconds:\n%s", n, &log)
	}
	select {
	case <-sweeps:
	default:
	}
	server.Restart(t)
	await.Receive(t, sweeps, "the reaper sweeps again")
	for _, id := range ids {
		await.Until(t, "the task that is due has ended", func() bool { return record(t, q, id).Status == queue.Failed })
	}
}

func TestPoisonHoldsUpNothing(t *testing.T) {
	t.Parallel()
	rdb := redistest.Shared(t).Client(t)
	q := open(t, rdb, 1)
	ids := enqueue(t, q, queue.Task{Kind: "good", Timeout: 100 * time.Millisecond}, queue.Task{Kind: "late", Delay: 300 * time.Millisecond})
	// A record that cannot be decoded, and a clock that is not a sorted set.
	if err := rdb.Set(t.Context(), q.Root(0)+":spec:0-poison", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	rdb.ZAdd(t.Context(), q.Root(0)+":deadlines", redis.Z{Score: 1, Member: "0-poison"})
	rdb.Set(t.Context(), q.Root(0)+":limits", "x", 0)

	var log harness.Logs
	var sweeps atomic.Int64
	run(t, reaper.New(q, reaper.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Observe: func(int, reaper.Swept) { sweeps.Add(1) }}))
	await.Until(t, "the good task has ended", func() bool { return record(t, q, ids[0]).Status == queue.Failed })
	await.Until(t, "the delayed task is in line", func() bool { return record(t, q, ids[1]).AvailableAt.IsZero() })
	before, start := sweeps.Load(), time.Now()
	time.Sleep(time.Second) // sleeps: the test measures a rate
	if rate := float64(sweeps.Load()-before) / time.Since(start).Seconds(); rate > 50 {
		t.Errorf("with a clock that cannot be read there were %.0f sweeps a second, want 50 at most", rate)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("%d errors were logged, want 1 in ten seconds:\n%s", n, &log)
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	q := open(t, redistest.Shared(t).Client(t), 4)
	before := goleak.IgnoreCurrent()
	swept := make(chan struct{}, 100)
	stop := run(t, reaper.New(q, reaper.Config{Observe: func(int, reaper.Swept) { swept <- struct{}{} }}))
	<-swept
	stop()
	goleak.VerifyNone(t, before)
}
