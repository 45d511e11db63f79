package requirements

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// An agent makes two calls, for 10 tasks as for 100: one suspends with all children, and one recalls
// the journal with all results. The worker fetches and settles it like any task.
func callsOfAHundred(t *testing.T) {
	for size, sum := range map[int]string{10: "45", 100: "4950"} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { callsOf(t, size, sum) })
	}
}

func callsOf(t *testing.T, size int, sum string) {
	s := frozen(t)
	agents := worker.New(s.q, worker.Config{Queues: map[string]int{"agents": 1}})
	agentwait.Handle(agents, "agent", func(a *agentwait.Agent, _ any) (sum int, err error) {
		all := make([]*agentwait.Future[int], size)
		for i := range all {
			all[i] = agentwait.Schedule[int](a, i, queue.Task{Kind: "k"})
		}
		results, err := agentwait.JoinAll(a, all...)
		for _, v := range results {
			sum += v
		}
		return sum, err
	})
	tasks := worker.New(s.q, worker.Config{})
	worker.Handle(tasks, "k", func(_ context.Context, in int) (int, error) { return in, nil })
	run := func(w *worker.Worker) {
		if ran, err := w.RunOne(t.Context()); err != nil || ran == nil {
			t.Fatalf("RunOne = %v, %v", ran, err)
		}
	}
	id := s.enqueue(queue.Task{Kind: "agent", Queue: "agents"})
	calls := s.scripts(id, func() { run(agents) })
	for range size {
		run(tasks)
	}
	calls += s.scripts(id, func() { run(agents) })
	if r := s.record(id); r.Status != queue.Completed || string(r.Result) != sum {
		t.Fatalf("the agent is %s: %s%s", r.Status, r.Result, r.Error)
	}
	if calls != 2 {
		t.Errorf("the agent made %d calls, want 2", calls)
	}
}

// TestSettlingCostsTheSameInABigWait counts the commands that the server runs at the end of one
// member: their number is the same in a wait of 10 members and in one of 10,000.
func TestSettlingCostsTheSameInABigWait(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	s := open(t, rdb, queue.Config{}, time.Time{})
	cost := map[int]int{}
	for _, size := range []int{10, 10_000} {
		id := s.enqueue(queue.Task{Kind: "agent", Queue: fmt.Sprint("agents", size)})
		line := fmt.Sprint("members", size)
		s.seq++
		trip, err := claim.Of(s.q).Fetch(t.Context(), 0, "w", claim.Ask{N: 1, Seq: s.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: fmt.Sprint("agents", size), N: 1}}})
		if err != nil || len(trip.Claims) != 1 {
			t.Fatalf("Fetch = %+v, %v", trip, err)
		}
		ids := s.enqueueAll(size, func(i int) queue.Task { return queue.Task{ID: fmt.Sprintf("%s.%d", id, i+1), Kind: "k", Queue: line} })
		var members []claim.Member
		for _, member := range ids {
			members = append(members, claim.Member{ID: member})
		}
		if _, err := claim.Of(s.q).Suspend(t.Context(), claim.Suspension{Agent: id, Epoch: 1, Worker: "w", Wait: claim.Wait{Entry: 1, Digest: "d", Members: members}}); err != nil {
			t.Fatal(err)
		}
		s.seq++
		trip, err = claim.Of(s.q).Fetch(t.Context(), 0, "w", claim.Ask{N: 2, Seq: s.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: line, N: 2}}})
		if err != nil || len(trip.Claims) != 2 {
			t.Fatalf("Fetch = %+v, %v", trip, err)
		}
		s.complete(trip.Claims[0])
		before := commands(t, rdb)
		s.complete(trip.Claims[1])
		cost[size] = commands(t, rdb) - before
		if e, err := inspect.Explain(t.Context(), s.q, id); err != nil || e.Wait == nil || e.Wait.Settled != 2 || e.Wait.Members != size {
			t.Fatalf("the wait is %+v, %v", e.Wait, err)
		}
	}
	if cost[10] != cost[10_000] || cost[10] == 0 {
		t.Errorf("an end costs %d commands in a wait of 10 and %d in one of 10,000", cost[10], cost[10_000])
	}
}

// scripts counts the calls of scripts while do runs: all of them, or those whose first argument
// is about.
func (s *stage) scripts(about string, do func()) int {
	n := scriptCounter{about: about}
	s.rdb.AddHook(&n)
	do()
	return int(n.sent.Load())
}

type scriptCounter struct {
	about string
	sent  atomic.Int64
}

func (n *scriptCounter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (n *scriptCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (n *scriptCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		args := cmd.Args() // verb, script, 1, root, and the arguments
		if lua.IsVerb(cmd.Name()) && !redis.HasErrorPrefix(err, "NOSCRIPT") && !strings.Contains(fmt.Sprint(err), "Function not found") &&
			(n.about == "" || len(args) > 4 && args[4] == n.about) {
			n.sent.Add(1)
		}
		return err
	}
}

// commands returns how many commands a server has run, including those of scripts.
func commands(t *testing.T, rdb redis.UniversalClient) (n int) {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(info, "\n") {
		var calls int
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		if _, err := fmt.Sscanf(rest, "calls=%d,", &calls); err == nil && name != "cmdstat_info" {
			n += calls
		}
	}
	return n
}
