package timing_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// mostWork is how much of the CPU time of Redis a script may take, in multiples of timing.Work. On a processor of 3 GHz it is 20 ms.
const mostWork = 3

// scripts checks that no script of a client keeps Redis busy for long. play uses the queue of the stage, whose scripts are measured.
func scripts(t *testing.T, most float64, play func(s *harness.Stage)) {
	server := redistest.Start(t)
	alone := server.Client(t)
	timing.Compare(t, most, timing.Work(t, alone), func(planted bool) time.Duration {
		s := harness.New(t, server.Addr, queue.Config{})
		meter := redistest.NewMeter(t, alone, func(cmd redis.Cmder) string {
			if !lua.IsVerb(cmd.Name()) {
				return ""
			}
			return fmt.Sprint(cmd.Args()[1])
		})
		s.Redis.AddHook(meter)
		if planted {
			s.Redis.AddHook(&slower{})
		}
		play(s)
		var most time.Duration
		for _, took := range meter.Empty() {
			most = max(most, took)
		}
		return most
	})
}

// slower is a hook of a client that makes its twentieth script take a second of CPU time or so.
type slower struct {
	mu      sync.Mutex
	scripts int
}

func (s *slower) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *slower) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (s *slower) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if lua.IsVerb(cmd.Name()) && s.isNext() {
			if err := next(ctx, redis.NewCmd(ctx, "EVAL", "local n = 0; for i = 1, 30000000 do n = n + i % 7 end; return n", 0)); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

func (s *slower) isNext() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts++
	return s.scripts == 20
}

// agent is an agent that a worker runs, and members that it waits for.
type agent struct {
	*harness.Stage
	queue.Claim
	wait   claim.Wait
	worker string
	seq    int64 // of the last fetch of the worker
}

// newAgent creates an agent and members, which are in the queue "members".
func newAgent(s *harness.Stage, members int) *agent {
	s.Helper()
	a := &agent{Stage: s, wait: claim.Wait{Entry: 1, Digest: "digest", Mode: queue.WaitAll}, worker: rand.Text()}
	s.Enqueue(queue.Task{Kind: "agent", Queue: "agents"})
	a.Claim = a.fetch("agents", 1)[0]
	tasks := make([]queue.Task, members)
	for i := range tasks {
		tasks[i] = queue.Task{ID: fmt.Sprint(a.ID, ".m", i), Kind: "member", Queue: "members"}
		a.wait.Members = append(a.wait.Members, claim.Member{ID: tasks[i].ID})
	}
	s.Enqueue(tasks...)
	return a
}

func (a *agent) ask(line string, n int) claim.Ask {
	a.seq++
	return claim.Ask{N: n, Seq: a.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: line, N: n}}}
}

func (a *agent) fetch(line string, n int) []queue.Claim {
	a.Helper()
	reply, err := claim.Of(a.Q).Fetch(a.Context(), 0, a.worker, a.ask(line, n))
	if err != nil || len(reply.Claims) == 0 {
		a.Fatalf("Fetch = %+v, %v, want claims", reply, err)
	}
	return reply.Claims
}

// suspend suspends the agent. It returns the outcome if the wait is over at once.
func (a *agent) suspend() *queue.WaitOutcome {
	a.Helper()
	outcome, err := claim.Of(a.Q).Suspend(a.Context(), claim.Suspension{Agent: a.ID, Epoch: a.Epoch, Worker: a.worker, Wait: a.wait})
	if err != nil {
		a.Fatal(err)
	}
	return outcome
}

// endMembers completes n members as a worker with 500 slots does: each report fetches the next ones.
func (a *agent) endMembers(n int) {
	a.Helper()
	claims := a.fetch("members", min(n, 500))
	for {
		n -= len(claims)
		ask := claim.Ask{}
		if n > 0 {
			ask = a.ask("members", min(n, 500))
		}
		claims = a.complete(claims, ask).Claims
		if n <= 0 {
			return
		}
		if len(claims) == 0 {
			claims = a.fetch("members", min(n, 500))
		}
	}
}

func (a *agent) complete(claims []queue.Claim, ask claim.Ask) claim.Reply {
	a.Helper()
	outcomes := make([]queue.Outcome, len(claims))
	for i, c := range claims {
		outcomes[i] = queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: []byte("1")}
	}
	reply, err := claim.Of(a.Q).Settle(a.Context(), 0, a.worker, queue.NewCall(), outcomes, ask)
	if err != nil || len(reply.Errors) > 0 {
		a.Fatal(err, reply.Errors)
	}
	return reply
}

// sweepUntil sweeps until a clock is empty.
func sweepUntil(s *harness.Stage, clock string) {
	s.Helper()
	await.Until(s.T, "the clock "+clock+" is empty", func() bool {
		if _, err := reaper.Sweep(s.Context(), s.Q, 0, "r", 100, fallback); err != nil {
			s.Fatal(err)
		}
		return s.Redis.ZCard(s.Context(), s.Key(clock)).Val() == 0
	})
}

// goOn runs the woken agent: it reads its journal and all of its children, and completes.
func (a *agent) goOn() {
	a.Helper()
	a.Claim = a.fetch("agents", 1)[0]
	a.suspend()
	var names []string
	for _, m := range a.wait.Members {
		names = append(names, m.ID[len(a.ID)+1:])
	}
	if _, err := claim.Of(a.Q).Children(a.Context(), a.ID, names); err != nil {
		a.Fatal(err)
	}
	a.complete([]queue.Claim{a.Claim}, claim.Ask{})
}

// However a wait of many members ends, no script keeps Redis busy for long.
func TestNoScriptIsLongInAWaitOfManyMembers(t *testing.T) {
	for _, life := range []struct {
		name    string
		members int
		live    func(a *agent)
	}{
		{"all members end", 2000, func(a *agent) {
			a.suspend()
			a.endMembers(len(a.wait.Members))
			a.goOn()
		}},
		{"all members ended before the wait", 3000, func(a *agent) {
			a.wait.Mode = queue.WaitSettled
			a.endMembers(len(a.wait.Members))
			if a.suspend() == nil {
				a.Fatal("the agent waits, although all members have ended")
			}
		}},
		{"the limit passes", 3000, func(a *agent) {
			a.wait.Limit = 200 * time.Millisecond
			a.endMembers(len(a.wait.Members) / 10)
			a.suspend()
			sweepUntil(a.Stage, "waits")
			sweepUntil(a.Stage, "draining")
			a.goOn()
		}},
		{"one is enough", 2000, func(a *agent) {
			a.wait.Mode, a.wait.CancelLosers = queue.WaitAny, true
			a.suspend()
			a.endMembers(1)
			sweepUntil(a.Stage, "waits")
			a.goOn()
		}},
		{"the agent is cancelled", 2000, func(a *agent) {
			a.suspend()
			a.endMembers(len(a.wait.Members) / 10)
			if _, err := a.Q.Cancel(a.Context(), a.ID, ""); err != nil {
				a.Fatal(err)
			}
			sweepUntil(a.Stage, "draining")
		}},
	} {
		t.Run(life.name, func(t *testing.T) {
			members := harness.Times(life.members, life.members, 10_000)
			scripts(t, mostWork, func(s *harness.Stage) { life.live(newAgent(s, members)) })
		})
	}
}

// Nor when many waits fire at once, at their limits or by one list of ends.
func TestNoScriptIsLongWhenManyWaitsFireAtOnce(t *testing.T) {
	const agents, members = 60, 60
	create := func(s *harness.Stage, wait claim.Wait) (all []*agent) {
		for range agents {
			a := newAgent(s, 0)
			for m := range members {
				a.wait.Members = append(a.wait.Members, claim.Member{ID: fmt.Sprint(a.ID, ".m", m)})
			}
			wait.Entry, wait.Digest, wait.Members = a.wait.Entry, a.wait.Digest, a.wait.Members
			a.wait = wait
			tasks := make([]queue.Task, members)
			for m := range tasks {
				tasks[m] = queue.Task{ID: a.wait.Members[m].ID, Kind: "member", Queue: map[bool]string{true: "firsts", false: "members"}[m == 0]}
			}
			s.Enqueue(tasks...)
			all = append(all, a)
		}
		for _, a := range all {
			a.suspend()
		}
		return all
	}
	t.Run("at their limits", func(t *testing.T) {
		scripts(t, mostWork, func(s *harness.Stage) {
			create(s, claim.Wait{Mode: queue.WaitAll, Limit: 300 * time.Millisecond})
			<-time.After(300 * time.Millisecond)
			sweepUntil(s, "waits")
		})
	})
	t.Run("by one list of ends", func(t *testing.T) {
		scripts(t, mostWork, func(s *harness.Stage) {
			all := create(s, claim.Wait{Mode: queue.WaitAny, CancelLosers: true})
			last := all[agents-1]
			last.complete(last.fetch("firsts", agents), claim.Ask{})
			sweepUntil(s, "waits")
		})
	})
}

// A task with very many children reaches its deadline.
func TestNoScriptIsLongWhenARunOfManyChildrenEnds(t *testing.T) {
	children := harness.Times(3000, 3000, 100_000)
	scripts(t, mostWork, func(s *harness.Stage) {
		id := s.Enqueue(queue.Task{Kind: "run", Queue: "nobody"})[0]
		tasks := make([]queue.Task, children)
		for i := range tasks {
			tasks[i] = queue.Task{ID: fmt.Sprint(id, ".", i+1), Kind: "child"}
		}
		s.Enqueue(tasks...)
		if _, err := s.Q.Cancel(s.Context(), id, ""); err != nil {
			t.Fatal(err)
		}
		sweepUntil(s, "draining")
	})
}

// crowd enqueues n tasks with one deadline, and returns after it.
func crowd(s *harness.Stage, n int) {
	s.Helper()
	for spare := time.Second; ; spare *= 2 {
		deadline := time.Now().Add(spare)
		receipts, err := s.Q.EnqueueAll(s.Context(), slices.Repeat([]queue.Task{{Kind: "k", Deadline: deadline}}, n))
		if err != nil {
			s.Fatal(err)
		}
		if !slices.ContainsFunc(receipts, func(r queue.Receipt) bool { return r.Err != nil }) { // otherwise the deadline was too early
			<-time.After(time.Until(deadline.Add(2 * time.Millisecond)))
			return
		}
		sweepUntil(s, "deadlines")
	}
}

// Very many tasks have the same deadline. Each sweep leaves Redis to other clients soon.
func TestNoSweepIsLongWhenManyTasksAreDue(t *testing.T) {
	scripts(t, mostWork, func(s *harness.Stage) {
		crowd(s, harness.Times(3000, 3000, 50_000))
		sweepUntil(s, "deadlines")
	})
}

// The end of a member costs the same in a wait of 4,000 members as in one of 10.
func TestAnEndCostsTheSameInALargeWait(t *testing.T) {
	const few, many, ends = 10, 4000, 100
	server := redistest.Start(t)
	alone := server.Client(t)
	wait := func(agents, members int) *agent {
		s := harness.New(t, server.Addr, queue.Config{})
		var last *agent
		for range agents {
			a := newAgent(s, 0)
			for m := range members {
				a.wait.Members = append(a.wait.Members, claim.Member{ID: fmt.Sprint(a.ID, ".m", m)})
			}
			tasks := make([]queue.Task, members)
			for m := range tasks {
				tasks[m] = queue.Task{ID: a.wait.Members[m].ID, Kind: "member", Queue: "members"}
			}
			s.Enqueue(tasks...)
			a.suspend()
			last = a
		}
		return last
	}
	type side struct {
		begin func() *agent
		agent *agent
		left  int // how often ends members can be claimed
	}
	large := &side{begin: func() *agent { return wait(1, many) }}
	small := &side{begin: func() *agent { return wait(many/few, few) }}
	// The members are claimed first, so that only their ends are measured.
	cost := func(s *side) time.Duration {
		if s.left == 0 {
			s.agent, s.left = s.begin(), many/ends-1
		}
		s.left--
		claims := s.agent.fetch("members", ends)
		return timing.CPU(t, alone, func() {
			for _, c := range claims {
				s.agent.complete([]queue.Claim{c}, claim.Ask{})
			}
		})
	}
	cost(large)
	cost(small)
	timing.Compare(t, 1.3, func() time.Duration { return cost(small) }, func(planted bool) time.Duration {
		took := cost(large)
		if planted {
			took += cost(large)
		}
		return took
	})
}

// Calls with large tasks are short also at high concurrency, because a call carries a bounded number of bytes.
func TestNoCallWithLargeTasksIsLong(t *testing.T) {
	n := harness.Times(30, 30, 300)
	scripts(t, 2*mostWork, func(s *harness.Stage) {
		payload := bytes.Repeat([]byte("p"), 1<<20)
		s.Enqueue(slices.Repeat([]queue.Task{{Kind: "large", Payload: payload}}, n)...)
		done := make(chan struct{}, n)
		w := worker.New(s.Q, worker.Config{Concurrency: n})
		w.HandleRaw("large", func(_ context.Context, got []byte) ([]byte, error) { done <- struct{}{}; return got, nil })
		stop := s.Run(w.Run)
		for range n {
			await.Receive(t, done, "a large task runs")
		}
		stop()
	})
}
