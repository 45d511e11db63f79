package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// TestTheResultOfAWaitDoesNotDependOnWhenItIsSwept plays random waits three times: with a sweep in
// every millisecond, with few sweeps, and with none before the end. The verdict, its instant, the
// decisive member, and how and when members ended must be the same, except for the differences that
// excused lists.
func TestTheResultOfAWaitDoesNotDependOnWhenItIsSwept(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	seed := size.Seed()
	compareLooks(t, redistest.Start(t).Client(t), seed, size.Times(100, 400, 60_000))
}

func TestTheResultOfAWaitDoesNotDependOnWhenItIsSweptOnTheEmbeddedServer(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	compareLooks(t, redistest.Embedded(t).Client(), size.Seed(), size.Times(5, 10, 100))
}

func compareLooks(t *testing.T, rdb *redis.Client, seed uint64, n int) {
	t.Logf("CURFEW_SEED=%d", seed)
	library := testclock.Library(t, rdb)
	var stages []*lookStage
	for _, partitions := range []int{1, 3} {
		q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: fmt.Sprint("looks", partitions), Partitions: partitions, Library: library,
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		stages = append(stages, &lookStage{T: t, ctx: t.Context(), rdb: rdb, q: q, base: testclock.Start})
	}
	met, verdicts := map[string]int{}, map[string]int{}
	for i := range n {
		s := stages[i%len(stages)]
		plan := drawLook(rand.New(rand.NewPCG(seed, uint64(i))), s.q.Partitions())
		prompt := s.play(plan, look{sweeps: func(int) bool { return true }})
		verdicts[fmt.Sprint(plan.wait.Mode, " ", cmp.Or(prompt.verdict.Reason, "none"))]++
		for name, look := range map[string]look{
			"rare sweeps":   {sweeps: func(at int) bool { return slices.Contains(plan.looks, at) }},
			"no sweeps":     {sweeps: never},
			"stale reports": {sweeps: never, stale: true},
		} {
			late := s.play(plan, look)
			for _, difference := range prompt.differences(&plan, late) {
				why := excused(&plan, prompt, late, difference)
				if why == "" {
					t.Fatalf("sequence %d of seed %d: with %s %s\n%v\nprompt %v\nlate   %v", i, seed, name, difference.what, plan, prompt, late)
				}
				met[why]++
			}
		}
	}
	t.Logf("verdicts: %v", verdicts)
	t.Logf("differences that are allowed: %v", met)
	t.Logf("sequences: %d", n)
}

// look says who looks when in a play.
type look struct {
	sweeps func(at int) bool
	stale  bool // reports of a worker that holds nothing: they change nothing, but end what is due
	around func(g *lookGame, sweep func())
}

func never(int) bool { return false }

// lookStage is a namespace whose clock only the plays move. All plays use the same stage.
type lookStage struct {
	*testing.T
	ctx   context.Context
	rdb   *redis.Client
	q     *queue.Queue
	base  time.Time
	plays int64
}

// lookResult is the result of a play.
type lookResult struct {
	agent   lookEnding
	verdict queue.WaitOutcome
	at      int64
	members []lookEnding
}

type lookEnding struct {
	status, reason string
	at             int64
	started        bool
}

func (r lookResult) String() string {
	return fmt.Sprintf("%v %s by %s at %d, settled %v; members %v", r.agent, r.verdict.Reason, r.verdict.Winner, r.at, r.verdict.Settled, r.members)
}

func (p lookPlan) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "partition %d, from %d: %+v from %d, looks at %v, stale reports at %v\n", p.partition, p.begins, p.wait, p.from, p.looks, p.stale)
	fmt.Fprintf(&text, "  agent: timeout %v, attempt %v, queue %v\n", p.agent.Timeout, p.agent.AttemptTimeout, p.agent.QueueTimeout)
	for _, m := range p.members {
		fmt.Fprintf(&text, "  %s %s within %d mask %q late %v: timeout %v on %s, queue %v, attempt %v on %s retries %d after %v, delay %v, grace %v, priority %d\n", m.name, m.sort, m.within, m.mask, m.late,
			m.task.Timeout, m.task.OnDeadline, m.task.QueueTimeout, m.task.AttemptTimeout, m.task.OnTimeout, m.task.MaxRetries, m.task.Backoff.Delay, m.task.Delay, m.task.CancelGrace, m.task.Priority)
	}
	for _, a := range p.acts {
		fmt.Fprintf(&text, "  at %d %s %s\n", a.at, a.op, p.members[a.member].name)
	}
	return text.String()
}

// play plays a plan.
func (s *lookStage) play(p lookPlan, l look) lookResult {
	s.Helper()
	s.plays++
	s.base = s.base.Add(time.Hour)
	s.clock(0)
	s.rest()
	g := &lookGame{lookStage: s, lookPlan: p, epochs: map[string]int64{}}
	g.start()
	for at, next := 0, 0; at < lookEnd; at++ {
		acts := at == p.begins || slices.ContainsFunc(p.acts, func(a lookAct) bool { return a.at == at })
		look, stale := l.sweeps(at) && (at >= next || acts), l.stale && slices.Contains(p.stale, at)
		if !acts && !look && !stale {
			continue
		}
		s.clock(at)
		if stale {
			g.reportOnAll()
		}
		switch {
		case look && l.around != nil:
			l.around(g, func() { s.rest() })
		case look:
			s.rest()
		}
		g.doAll(at)
		if look {
			next = at + s.rest()
		}
	}
	for i := range 3 { // a grace that starts with one sweep ends with the next
		s.clock((1 + i) * 100 * lookEnd)
		s.rest()
	}
	return g.result()
}

func (s *lookStage) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *lookStage) clock(at int) {
	for p := range s.q.Partitions() {
		testclock.Set(s, s.rdb, s.q.Root(p), s.base.Add(time.Duration(at)*time.Millisecond))
	}
}

// rest sweeps until nothing is due, and returns in how many ms something will be.
func (s *lookStage) rest() int {
	first := 500
	for p := range s.q.Partitions() {
		for wait := time.Duration(0); wait == 0; {
			swept, err := reaper.Sweep(s.ctx, s.q, p, "r", 100, 500*time.Millisecond)
			s.check(err)
			wait = swept.Wait
			first = min(first, int(wait.Milliseconds()))
		}
	}
	return first
}

// lookGame is one play.
type lookGame struct {
	*lookStage
	lookPlan
	agent  string
	epochs map[string]int64
}

func (g *lookGame) id(m lookMember) string { return g.agent + "." + m.name }

func (g *lookGame) task(m lookMember) queue.Task {
	task := m.task
	task.ID = g.id(m)
	return task
}

func (g *lookGame) fetch(worker, name string) {
	reply, err := claim.Of(g.q).Fetch(g.ctx, g.partition, worker, claim.Ask{N: 50, Seq: g.plays, Lease: 30 * time.Minute,
		Quotas: []claim.Quota{{Queue: name, N: 50}}})
	g.check(err)
	for _, c := range reply.Claims {
		g.epochs[c.ID] = c.Epoch
	}
}

// start makes the agent, and the members that exist before the wait.
func (g *lookGame) start() {
	for g.agent == "" {
		r, err := g.q.Enqueue(g.ctx, g.lookPlan.agent)
		g.check(err)
		if p, err := queue.PartitionOf(r.ID); err == nil && p == g.partition {
			g.agent = r.ID
			break
		}
		_, err = g.q.Cancel(g.ctx, r.ID, "")
		g.check(err)
	}
	g.fetch("w1", "agents")
	for _, m := range g.members {
		if !m.late {
			_, err := g.q.Enqueue(g.ctx, g.task(m))
			g.check(err)
		}
	}
	g.fetch("w2", "run")
}

func (g *lookGame) suspend() {
	s := claim.Suspension{Agent: g.agent, Epoch: g.epochs[g.agent], Worker: "w1", Wait: g.wait}
	if g.from >= 0 {
		s.Wait.From = g.base.Add(time.Duration(g.from) * time.Millisecond)
	}
	for _, m := range g.members {
		s.Wait.Members = append(s.Wait.Members, claim.Member{ID: g.id(m), Patience: time.Duration(m.within) * time.Millisecond, Mask: m.mask})
		if m.late {
			s.Children = append(s.Children, g.task(m))
		}
	}
	_, err := claim.Of(g.q).Suspend(g.ctx, s)
	if !errors.Is(err, refusal.ErrNotHeld) {
		g.check(err)
	}
}

// reportOnAll reports on every task as a worker that does not hold it. The report is refused, after what is due has ended.
func (g *lookGame) reportOnAll() {
	outcomes := []queue.Outcome{{ID: g.agent, Epoch: 999, Verb: queue.Complete}}
	for _, m := range g.members {
		outcomes = append(outcomes, queue.Outcome{ID: g.id(m), Epoch: 999, Verb: queue.Complete})
	}
	_, err := claim.Of(g.q).Settle(g.ctx, g.partition, "w9", queue.NewCall(), outcomes, claim.Ask{})
	g.check(err)
}

// doAll makes the calls that are planned for an instant.
func (g *lookGame) doAll(at int) {
	if at == g.begins {
		g.suspend()
	}
	for _, act := range g.acts {
		if act.at == at {
			g.do(act)
		}
	}
}

// do makes one call. Whether the call is too late or too early is decided by the scripts.
func (g *lookGame) do(a lookAct) {
	m := g.members[a.member]
	id, err := g.id(m), error(nil)
	verbs := map[string]queue.Outcome{"complete": {Verb: queue.Complete}, "fail": {Verb: queue.Fail, Error: "e"},
		"discard": {Verb: queue.Fail, Error: "e", Class: queue.ClassFailed}}
	switch {
	case a.op == "stop":
		_, err = g.q.Cancel(g.ctx, g.agent, "")
	case a.op == "cancel":
		_, err = g.q.Cancel(g.ctx, id, "")
	case m.sort == "signal":
		_, err = g.q.Signal(g.ctx, g.agent, m.name[2:], []byte("1"))
	case m.sort == "run":
		o := verbs[a.op]
		o.ID, o.Epoch = id, g.epochs[id]
		_, err = claim.Of(g.q).Settle(g.ctx, g.partition, "w2", queue.NewCall(), []queue.Outcome{o}, claim.Ask{})
	case m.sort == "line":
	case a.op == "complete":
		_, err = g.q.Resolve(g.ctx, id, nil)
	default:
		_, err = g.q.Reject(g.ctx, id, "")
	}
	if !errors.Is(err, refusal.ErrNotFound) && !errors.Is(err, refusal.ErrOwnerEnded) {
		g.check(err)
	}
}

func (g *lookGame) since(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Sub(g.base).Milliseconds()
}

func (g *lookGame) result() lookResult {
	agent, err := g.q.Get(g.ctx, g.agent)
	g.check(err)
	r := lookResult{agent: g.ending(agent)}
	memory, err := claim.Of(g.q).Recall(g.ctx, g.agent)
	g.check(err)
	if o, ok := queue.ReadWaitOutcome(memory.Journal[1]); ok {
		r.verdict, r.at = o, g.since(o.At)
	}
	for _, m := range g.members {
		record, err := g.q.Get(g.ctx, g.id(m))
		if errors.Is(err, refusal.ErrNotFound) {
			r.members = append(r.members, lookEnding{status: "none"})
			continue
		}
		g.check(err)
		r.members = append(r.members, g.ending(record))
	}
	_, err = g.q.Cancel(g.ctx, g.agent, "")
	g.check(err)
	return r
}

func (g *lookGame) ending(r *queue.Record) lookEnding {
	e := lookEnding{status: string(r.Status), reason: cmp.Or(string(r.TimeoutType), string(r.Reason)), started: !r.StartedAt.IsZero()}
	if r.Status.Ended() {
		e.at = g.since(r.CompletedAt)
	}
	return e
}

// lookDifference is a difference between two plays.
type lookDifference struct {
	what   string
	member int // -1: of the wait itself
}

func (r lookResult) differences(p *lookPlan, late lookResult) (all []lookDifference) {
	add := func(member int, what string, prompt, late any) {
		if fmt.Sprint(prompt) != fmt.Sprint(late) {
			all = append(all, lookDifference{fmt.Sprintf("%s is %v, and with prompt sweeps %v", what, late, prompt), member})
		}
	}
	add(-1, "the agent", r.agent, late.agent)
	add(-1, "the verdict", r.verdict.Reason, late.verdict.Reason)
	add(-1, "the winner", r.verdict.Winner, late.verdict.Winner)
	add(-1, "the instant", r.at, late.at)
	add(-1, "the order of ends", r.verdict.Settled, late.verdict.Settled)
	for i := range r.members {
		add(i, "member "+p.members[i].name, r.members[i], late.members[i])
	}
	return all
}

// excused returns why a difference is allowed, or "" if it is not. docs/explanation/agents.md has the list.
func excused(p *lookPlan, prompt, late lookResult, d lookDifference) string {
	switch {
	case prompt.loser(p, d.member) && late.members[d.member].at >= prompt.at:
		return "a member that is no longer needed runs until a call finds that the wait is over"
	case prompt.uncounted(p, d.member) && late.members[d.member].reason == "wait_timeout" && late.members[d.member].at >= prompt.at:
		return "Within ends a member until a call finds that the wait is over"
	case slices.ContainsFunc(p.members, func(m lookMember) bool { return m.within > 0 && m.task.CancelGrace > 0 }):
		return "a grace starts when the cancel is written"
	case p.agent.QueueTimeout > 0 && prompt.agent.reason == "queue":
		return "an agent is in line when a call finds that its wait is over"
	case prompt.agent.ended() && d.member >= 0 && (prompt.ofWait(d.member) || late.ofWait(d.member)):
		return "a wait of an agent that has ended ends no member"
	}
	return ""
}

func (e lookEnding) ended() bool { return queue.Status(e.status).Ended() }

// ofWait reports whether a member was cancelled by its wait.
func (r lookResult) ofWait(member int) bool {
	return r.members[member].reason == "not_needed" || r.members[member].reason == "wait_timeout"
}

// loser reports whether a member had not ended when the wait was over, and was cancelled for that.
func (r lookResult) loser(p *lookPlan, member int) bool {
	if !r.uncounted(p, member) {
		return false
	}
	e := r.members[member]
	return e.reason == "not_needed" || e.reason == "wait_timeout" || e.reason == "cancelled" && p.members[member].task.CancelGrace > 0
}

// uncounted reports whether a member had not ended when the wait was over.
func (r lookResult) uncounted(p *lookPlan, member int) bool {
	return member >= 0 && r.verdict.Reason != "" && !slices.Contains(r.verdict.Settled, p.members[member].name)
}
