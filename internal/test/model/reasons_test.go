package model

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
)

// TestACancelledTaskKeepsItsReason cancels a running child for each reason, with and without a grace, and lets the grace end in
// each way. The record, the event and the hook must have the reason and the text of the cancellation.
func TestACancelledTaskKeepsItsReason(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	rdb := redistest.Start(t).Client(t)
	q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: "reasons", Partitions: 1, Library: testclock.Library(t, rdb),
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, cause := range cancelCauses {
		for _, end := range graceEnds {
			t.Run(cause.name+", "+end.name, func(t *testing.T) {
				n++
				s := &lookStage{T: t, ctx: t.Context(), rdb: rdb, q: q, base: testclock.Start.Add(time.Duration(n) * 24 * time.Hour), plays: int64(n)}
				s.cancelled(cause, end)
			})
		}
	}
}

// cancelCause is a way to cancel the member 2 of a wait.
type cancelCause struct {
	name   string
	wait   claim.Wait
	within int
	cancel func(g *lookGame)
	reason queue.Reason
	text   string
}

var cancelCauses = []cancelCause{
	{"by a client", claim.Wait{Mode: queue.WaitAll}, 0, func(g *lookGame) {
		_, err := g.q.Cancel(g.ctx, g.id(g.members[1]), "no more budget")
		g.check(err)
	}, queue.ReasonCancelled, "no more budget"},
	{"as a loser", claim.Wait{Mode: queue.WaitAny, CancelLosers: true}, 0, func(g *lookGame) {
		g.do(lookAct{op: "complete", member: 0})
	}, queue.ReasonNotNeeded, "No longer needed"},
	{"at the limit of its wait", claim.Wait{Mode: queue.WaitAll, Limit: 10 * time.Millisecond}, 0, (*lookGame).sweepAt11, queue.ReasonWaitTimeout, "Wait timed out"},
	{"at its own limit in its wait", claim.Wait{Mode: queue.WaitAll}, 10, (*lookGame).sweepAt11, queue.ReasonWaitTimeout, "Wait timed out"},
}

func (g *lookGame) sweepAt11() {
	g.clock(11)
	g.rest()
}

// graceEnd is a way in which a grace ends.
type graceEnd struct {
	name    string
	grace   time.Duration
	end     func(g *lookGame)
	timeout time.Duration // of the task
}

var graceEnds = []graceEnd{
	{"without a grace", 0, func(*lookGame) {}, 0},
	{"its handler completes", 20 * time.Millisecond, func(g *lookGame) { g.do(lookAct{op: "complete", member: 1}) }, 0},
	{"its handler fails", 20 * time.Millisecond, func(g *lookGame) { g.do(lookAct{op: "fail", member: 1}) }, 0},
	{"its handler fails for good", 20 * time.Millisecond, func(g *lookGame) { g.do(lookAct{op: "discard", member: 1}) }, 0},
	{"its handler releases it", 20 * time.Millisecond, func(g *lookGame) { g.release(g.members[1]) }, 0},
	{"a sweep ends it", 20 * time.Millisecond, func(g *lookGame) { g.clock(1000); g.rest() }, 0},
	{"another call ends it", 20 * time.Millisecond, func(g *lookGame) { g.clock(1000); g.reportOnAll() }, 0},
	{"a second cancel comes", 20 * time.Millisecond, func(g *lookGame) {
		_, err := g.q.Cancel(g.ctx, g.id(g.members[1]), "another text")
		g.check(err)
		g.clock(1000)
		g.rest()
	}, 0},
	{"its deadline passes", time.Hour, func(g *lookGame) { g.clock(1000); g.rest() }, 500 * time.Millisecond},
	{"its worker leaves", 20 * time.Millisecond, func(g *lookGame) {
		_, err := claim.Of(g.q).Heartbeat(g.ctx, g.partition, "w2", 0, g.plays, nil)
		g.check(err)
	}, 0},
	{"its worker is lost", 2 * time.Hour, func(g *lookGame) { g.clock(3_600_000); g.rest() }, 0},
	{"its owner ends", 20 * time.Millisecond, func(g *lookGame) {
		_, err := g.q.Cancel(g.ctx, g.agent, "the owner")
		g.check(err)
		g.rest()
	}, 0},
}

func (g *lookGame) release(m lookMember) {
	o := queue.Outcome{ID: g.id(m), Epoch: g.epochs[g.id(m)], Verb: queue.Release}
	_, err := claim.Of(g.q).Settle(g.ctx, g.partition, "w2", queue.NewCall(), []queue.Outcome{o}, claim.Ask{})
	g.check(err)
}

// cancelled plays one case.
func (s *lookStage) cancelled(cause cancelCause, end graceEnd) {
	s.clock(0)
	s.rest()
	p := lookPlan{agent: queue.Task{Kind: "agent", Queue: "agents"}, from: -1, wait: cause.wait, members: []lookMember{
		{name: "1", sort: "promise", task: queue.Task{Kind: "k", Promise: true}},
		{name: "2", sort: "run", within: cause.within, task: queue.Task{Kind: "k", Queue: "run", MaxRetries: 3, Timeout: end.timeout,
			CancelGrace: end.grace, Hooks: queue.Hooks{OnCancel: queue.Hook{Kind: "hook"}}}},
	}}
	p.wait.Entry, p.wait.Digest, p.wait.Mask = 1, "d", "obbbb"
	g := &lookGame{lookStage: s, lookPlan: p, epochs: map[string]int64{}}
	g.start()
	defer func() { // so that no later case finds it
		_, err := s.q.Cancel(s.ctx, g.agent, "the end of the test")
		s.check(err)
	}()
	g.suspend()
	cause.cancel(g)
	end.end(g)
	id := g.id(p.members[1])
	r, err := s.q.Get(s.ctx, id)
	s.check(err)
	if r.Status != queue.Cancelled || r.Reason != cause.reason || r.Error != cause.text {
		s.Errorf("the record is %s with reason %q and error %q, want CANCELLED, %q and %q", r.Status, r.Reason, r.Error, cause.reason, cause.text)
	}
	hook, err := s.q.Get(s.ctx, id+"!cancel")
	s.check(err)
	var about struct{ Reason, Error string }
	s.check(json.Unmarshal(hook.Payload, &about))
	if about.Reason != string(cause.reason) || about.Error != cause.text {
		s.Errorf("its hook is told %+v, want %q and %q", about, cause.reason, cause.text)
	}
	if event := s.event("task_cancelled " + id + " "); !strings.Contains(event, " reason="+string(cause.reason)) {
		s.Errorf("its event is %q, want reason=%s", event, cause.reason)
	}
}

// event returns the newest event that contains a text.
func (s *lookStage) event(text string) string {
	s.Helper()
	entries, err := s.rdb.XRevRange(s.ctx, s.q.Root(0)+":events", "+", "-").Result()
	s.check(err)
	for _, entry := range entries {
		for line := range strings.Lines(fmt.Sprint(entry.Values["events"])) {
			if strings.Contains(line, text) {
				return line
			}
		}
	}
	return ""
}
