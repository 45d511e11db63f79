package races

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// write is a call that writes, on its own tasks.
type write struct {
	name string
	call func(ctx context.Context, q *queue.Queue) error
	done func() bool // whether it has had its effect
}

// writes prepares a call of each kind.
func (s *stage) writes() []write {
	ids := s.Enqueue(queue.Task{Kind: "settled"}, queue.Task{Kind: "held"})
	s.fetch("w", 1, 2, time.Minute)
	s.fetch("gone", 1, 0, time.Minute)
	cancelled := s.Enqueue(queue.Task{Kind: "cancelled", Queue: "other"})[0]
	ready := s.Enqueue(queue.Task{Kind: "ready", Queue: "fetched"})[0]
	status := func(id string, status queue.Status) func() bool {
		return func() bool { return s.Record(id).Status == status }
	}
	count := func(name string) func() bool {
		return func() bool {
			stats, err := s.Q.Stats(s.Context())
			if err != nil {
				s.Error(err)
			}
			for _, q := range stats.Queues {
				if q.Queue == name {
					return q.Enqueued == 1 && q.Ready == 1
				}
			}
			return false
		}
	}
	root := func(field string) func() bool {
		return func() bool { return s.Redis.HExists(s.Context(), s.Q.Root(0), field).Val() }
	}
	return []write{
		{"enqueue", func(ctx context.Context, q *queue.Queue) error {
			_, err := q.Enqueue(ctx, queue.Task{Kind: "new", Queue: "one"})
			return err
		}, count("one")},
		{"enqueue all", func(ctx context.Context, q *queue.Queue) error {
			_, err := q.EnqueueAll(ctx, []queue.Task{{Kind: "new", Queue: "all"}})
			return err
		}, count("all")},
		{"fetch", func(ctx context.Context, q *queue.Queue) error {
			_, err := claim.Of(q).Fetch(ctx, 0, "f", claim.Ask{N: 1, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "fetched", N: 1}}})
			return err
		}, status(ready, queue.Running)},
		{"settle", func(ctx context.Context, q *queue.Queue) error {
			_, err := claim.Of(q).Settle(ctx, 0, "w", "call", []queue.Outcome{{ID: ids[0], Epoch: 1, Verb: queue.Complete}}, claim.Ask{})
			return err
		}, status(ids[0], queue.Completed)},
		{"heartbeat", func(ctx context.Context, q *queue.Queue) error {
			_, err := claim.Of(q).Heartbeat(ctx, 0, "beating", time.Hour, 0, nil)
			return err
		}, func() bool { return s.Redis.ZScore(s.Context(), s.Key("workers"), "beating").Err() == nil }},
		{"goodbye", func(ctx context.Context, q *queue.Queue) error {
			_, err := claim.Of(q).Heartbeat(ctx, 0, "gone", 0, 1, nil)
			return err
		}, func() bool { return s.Redis.ZScore(s.Context(), s.Key("workers"), "gone").Err() != nil }},
		{"cancel", func(ctx context.Context, q *queue.Queue) error {
			_, err := q.Cancel(ctx, cancelled, "")
			return err
		}, status(cancelled, queue.Cancelled)},
		{"sweep", func(ctx context.Context, q *queue.Queue) error {
			_, err := reaper.Sweep(ctx, q, 0, "r", 100, 500*time.Millisecond)
			return err
		}, root("turn_of")},
	}
}

// each makes all calls at the same time, and checks the error of each.
func each(writes []write, q *queue.Queue, timeout time.Duration, check func(w write, err error)) {
	var group sync.WaitGroup
	for _, w := range writes {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			check(w, w.call(ctx, q))
		})
	}
	group.Wait()
}

// enough is a deadline before which a busy machine also sends a call.
const enough = 5 * time.Second

func TestWithoutAnyReplyTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	writes := s.writes()
	proxy := faultproxy.Start(t, s.Addr)
	caller := s.AnotherAt(proxy.Addr)
	proxy.CutReply(scripts, 1<<30)
	each(writes, caller, enough, func(w write, err error) {
		if !errors.Is(err, refusal.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, refusal.ErrUnavailable) {
			t.Errorf("%s whose replies are all lost: %v, want ErrUnknown and DeadlineExceeded", w.name, err)
		}
	})
	for _, w := range writes {
		if !w.done() {
			t.Errorf("%s, whose replies were lost, has not had its effect", w.name)
		}
	}
	s.Audit(s.Q)
}

// A server that hangs does not reply, and does not close the connection.
func TestWithoutAnAnswerInTimeTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	writes := s.writes()
	proxy := faultproxy.Start(t, s.Addr)
	caller := s.AnotherAt(proxy.Addr)
	proxy.Hold(scripts)
	each(writes, caller, enough, func(w write, err error) {
		if !errors.Is(err, refusal.ErrUnknown) {
			t.Errorf("%s without a reply: %v, want ErrUnknown", w.name, err)
		}
	})
	for _, w := range writes {
		if !w.done() {
			t.Errorf("%s has not had its effect", w.name)
		}
	}
	s.Audit(s.Q)
}

func TestWithoutARedisNothingIsChanged(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	s := newStage(t, server.Addr, queue.Config{})
	writes := s.writes()
	before := redistest.Dump(t, s.Redis, s.Q.Namespace())
	hasty, patient := s.Another(), s.Another()
	server.Kill()

	each(writes, hasty, 300*time.Millisecond, func(w write, err error) {
		// When the context ends, it is not known whether the request was sent: ErrUnknown is
		// possible too.
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s without a Redis, with a timeout of 300ms: %v, want DeadlineExceeded", w.name, err)
		}
	})
	each(writes, patient, time.Minute, func(w write, err error) {
		// A try that a stopped machine ends may have been sent.
		for range 3 {
			if errors.Is(err, refusal.ErrUnknown) {
				err = w.call(context.Background(), patient)
			}
		}
		if !errors.Is(err, refusal.ErrUnavailable) || errors.Is(err, refusal.ErrUnknown) {
			t.Errorf("%s without a Redis: %v, want ErrUnavailable", w.name, err)
		}
	})
	hasty.Client().Close() // the outcome of its calls is unknown, so one may still be tried after the restart
	server.Restart(t)
	s.Redis = harness.Client(t, server.Addr)
	if diff := redistest.Diff(before, redistest.Dump(t, s.Redis, s.Q.Namespace())); diff != "" {
		t.Errorf("the calls changed:\n%s", diff)
	}
}

// scripts matches every call of a script.
var scripts = faultproxy.Command("fcall", "eval", "evalsha")

func TestWorkerWhoseRepliesAreCut(t *testing.T) {
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	least := rounds(1000)
	enough := int64(least / 25) // of replies that are cut
	proxy := faultproxy.Start(t, s.Addr)
	var cutting atomic.Bool
	var cuts atomic.Int64
	cutting.Store(true)
	proxy.CutReply(func(args [][]byte) bool {
		// All calls of a worker, including the wait for work.
		asks := scripts(args) || faultproxy.Command("blpop")(args)
		cut := asks && cutting.Load() && rand.IntN(3) == 0
		if cut {
			cuts.Add(1)
		}
		return cut
	}, 1<<30)

	w := worker.New(s.AnotherAt(proxy.Addr), worker.Config{Concurrency: 20, Lease: 5 * time.Second})
	var mu sync.Mutex
	runs := map[string]int{}
	w.HandleRaw("k", func(ctx context.Context, payload []byte) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		runs[worker.Info(ctx).ID]++
		if string(payload) == "again" && worker.Info(ctx).Attempt == 1 {
			return nil, errors.New("the first attempt fails")
		}
		return payload, nil
	})
	s.Run(w.Run)

	var ids []string
	start := time.Now()
	// With pauses, so that the worker is sometimes idle. A busy machine makes fewer calls for the same tasks, so it gets more tasks.
	for len(ids) < least || cuts.Load() < enough && len(ids) < 10*least {
		tasks := make([]queue.Task, 50)
		for i := range tasks {
			tasks[i] = queue.Task{Kind: "k", Payload: []byte("x"), Timeout: time.Minute, MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}}
			if i%10 == 0 {
				tasks[i].Payload = []byte("again")
			}
		}
		ids = append(ids, s.Enqueue(tasks...)...)
		until(time.Now().Add(time.Duration(rand.IntN(150)) * time.Millisecond))
	}
	await.Until(t, "all tasks have ended", func() bool { return s.zcard("deadlines") == 0 })
	took, n := time.Since(start), len(ids)
	cutting.Store(false)
	await.Until(t, "the worker has the verdicts of all tasks", func() bool { return w.Stats().Completed+w.Stats().Refused+w.Stats().Dropped >= int64(n) })

	mu.Lock()
	defer mu.Unlock()
	stats := w.Stats()
	t.Logf("%d tasks in %v, %d replies cut: %+v", n, took, cuts.Load(), stats)
	if cuts.Load() < enough {
		t.Errorf("%d replies were cut, which is too few for this test", cuts.Load())
	}
	if stats.Completed != int64(n) || stats.Failed != int64(n/10) || stats.Refused+stats.Dropped+stats.Released != 0 {
		t.Errorf("the worker counts %+v, want %d completed, %d failed, and none refused, dropped or released", stats, n, n/10)
	}
	for id, r := range s.account(ids) {
		want := 1
		if string(r.Payload) == "again" {
			want = 2
		}
		if r.Status != queue.Completed || r.Epoch != int64(want) || runs[id] != want || r.LeaseLosses != 0 || r.Retries != want-1 {
			s.Complain("%s is %s after %d runs, %d claims, %d retries and %d lost leases, want %d run(s) and claim(s)", id, r.Status, runs[id], r.Epoch, r.Retries, r.LeaseLosses, want)
		}
	}
}
