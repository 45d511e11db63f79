package races

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

func TestReaperKilledAtAnyMoment(t *testing.T) {
	redistest.NoRace(t, "it kills processes")
	again(t, testReaperKilled)
}

func testReaperKilled(t *testing.T) {
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	var ids []string
	feed := s.Run(func(ctx context.Context) error {
		ids = s.stream(ctx)
		return nil
	})
	var crowds []string
	kills := harness.Times(5, 10, 50)
	for i := range kills {
		switch c := s.Spawn("reaper"); i % 5 {
		case 0: // it can die before its first sweep
			until(time.Now().Add(time.Duration(rand.IntN(100)) * time.Millisecond))
			c.Kill()
		case 1, 2: // it dies while few tasks are due
			await.Receive(t, c.Lines, "the reaper sweeps")
			until(time.Now().Add(time.Duration(20+rand.IntN(280)) * time.Millisecond))
			c.Kill()
		default: // it dies while many tasks are due
			await.Receive(t, c.Lines, "the reaper sweeps")
			crowds = append(crowds, s.Enqueue(crowd(600, 30*time.Millisecond)...)...)
			until(time.Now().Add(time.Duration(25+rand.IntN(25)) * time.Millisecond))
			c.Kill()
		}
	}
	feed()
	ids = append(ids, crowds...)
	t.Logf("%d reapers killed over %d tasks", kills, len(ids))

	// Many tasks fall due while no reaper runs. The last reaper ends all of them.
	const last = 1000
	ids = append(ids, s.Enqueue(crowd(last, 500*time.Millisecond)...)...)
	until(time.Now().Add(600 * time.Millisecond))
	due := s.zcard("deadlines")
	if due < last {
		t.Fatalf("only %d tasks are due, want at least those that fell due without a reaper", due)
	}
	s.Reap(reaper.Config{Fallback: fallback})
	await.Until(t, "all due tasks have ended", func() bool { return s.zcard("deadlines") == 0 })
	await.Until(t, "no lease and no owner is left", func() bool { return s.zcard("workers")+s.zcard("draining") == 0 })
	s.account(ids)
}

// crowd returns n tasks with the same timeout.
func crowd(n int, timeout time.Duration) []queue.Task {
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "crowd", Timeout: timeout}
	}
	return tasks
}

// stream enqueues tasks for every clock until ctx ends, and claims some for workers that vanish. It
// returns all ids.
func (s *stage) stream(ctx context.Context) (ids []string) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	soon := func() time.Duration { return time.Duration(10+rand.IntN(200)) * time.Millisecond }
	add := func(tasks ...queue.Task) []string {
		receipts, err := s.Q.EnqueueAll(s.Context(), tasks)
		if err != nil {
			s.Error(err)
		}
		var added []string
		for _, r := range receipts {
			if r.Err == nil { // a child's owner can have ended
				added = append(added, r.ID)
			}
		}
		ids = append(ids, added...)
		return added
	}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return ids
		case <-ticker.C:
		}
		tasks := []queue.Task{
			{Kind: "delayed", Delay: soon() / 4, Timeout: 250 * time.Millisecond},
			{Kind: "queued", QueueTimeout: soon() / 4, Timeout: 250 * time.Millisecond},
			{Kind: "owner", Timeout: soon()},
		}
		for range 8 {
			tasks = append(tasks, queue.Task{Kind: "plain", Timeout: soon(), AttemptTimeout: soon() / 2})
		}
		added := add(tasks...)
		if len(added) < len(tasks) {
			return ids // the test has failed
		}
		owner := added[2]
		add(queue.Task{Kind: "child", ID: owner + ".1"}, queue.Task{Kind: "child", ID: owner + ".2", Timeout: time.Minute})
		if n%3 == 0 {
			s.vanish(fmt.Sprint("w", n))
		}
	}
}

// vanish fetches tasks for a worker that completes one and never sends another call.
func (s *stage) vanish(name string) {
	trip, err := claim.Of(s.Q).Fetch(s.Context(), 0, name, ask(1, 4, 60*time.Millisecond))
	if err != nil || len(trip.Claims) == 0 {
		return
	}
	c := trip.Claims[0]
	if _, err := claim.Of(s.Q).Settle(s.Context(), 0, name, queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete}}, claim.Ask{}); err != nil {
		s.Error(err)
	}
}

func TestWorkerKilled(t *testing.T) {
	redistest.NoRace(t, "it kills processes")
	t.Parallel()
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	rescuer := worker.New(s.Another(), worker.Config{Concurrency: 20, Queues: map[string]int{"rescue": 1}})
	rescuer.HandleRaw("idle", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	s.Run(rescuer.Run) // only its reaper is needed: its queue has no tasks

	var all []string
	for range rounds(2) {
		// Eight tasks that can run again, and eight whose deadlines come before the lease ends.
		var tasks []queue.Task
		for i := range 16 {
			task := queue.Task{Kind: "hang"}
			if i >= 8 {
				task.Timeout = 400*time.Millisecond + time.Duration(rand.IntN(300))*time.Millisecond
			}
			tasks = append(tasks, task)
		}
		c := s.Spawn("worker")
		await.Until(t, "the worker has a lease", func() bool { return s.zcard("workers") == 2 })
		ids := s.Enqueue(tasks...)
		all = append(all, ids...)
		for range ids {
			if line := await.Receive(t, c.Lines, "the worker runs all tasks"); !strings.HasPrefix(line, "began ") {
				t.Fatal(line)
			}
		}
		c.Kill()
		ran := s.finishElsewhere(8)
		for i, id := range ids {
			r := s.Record(id)
			switch {
			case i < 8 && (r.Status != queue.Completed || r.LeaseLosses != 1 || r.Epoch != 2 || r.Retries != 0 || !ran[id]):
				t.Errorf("%s is %s after %d lost leases, %d claims and %d retries; ran again: %v", id, r.Status, r.LeaseLosses, r.Epoch, r.Retries, ran[id])
			case i >= 8 && (!r.TimedOut || r.TimeoutType != "execution" || r.Epoch != 1):
				t.Errorf("%s, whose deadline is before the end of the lease, is %s with timeout type %q after %d claims", id, r.Status, r.TimeoutType, r.Epoch)
			}
		}
		if left := s.Redis.Keys(s.Context(), s.Key("claims:*")).Val(); len(left) > 0 {
			t.Errorf("the killed worker still has the keys %v", left)
		}
	}
	s.account(all)
}

// finishElsewhere runs a worker in this process until it has completed n tasks of kind hang. It returns
// which.
func (s *stage) finishElsewhere(n int) (ran map[string]bool) {
	w := worker.New(s.Another(), worker.Config{NoReaper: true})
	done := make(chan string, 100)
	w.HandleRaw("hang", func(ctx context.Context, _ []byte) ([]byte, error) {
		done <- worker.Info(ctx).ID
		return nil, nil
	})
	stop := s.Run(w.Run)
	defer stop()
	ran = map[string]bool{}
	for len(ran) < n {
		ran[await.Receive(s.T, done, "the tasks of a killed worker run again")] = true
	}
	return ran
}
