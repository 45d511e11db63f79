package model

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
)

// compareEvents compares the events of the newest call. It also checks that each ended task has
// one event of its end and a live task has none, and that no task has two warnings.
func (p *player) compareEvents(t *rapid.T, s *audit.Snapshot) {
	from := "-"
	if p.read != "" {
		from = "(" + p.read
	}
	entries, err := p.rdb.XRange(p.ctx, p.q.EventsKey(0), from, "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	var all []events.Event
	for _, entry := range entries {
		p.read = entry.ID
		p.trace.add("event", entry.Values)
		all = append(all, events.In(0, entry)...)
	}
	for _, e := range all {
		kind, id := e.Kind, e.TaskID
		words := []string{kind, id}
		more := map[string][]string{"rejected": {"op", "reason"}, "task_timed_out": {"timeout_type"},
			"task_completed": {"reason"}, "task_failed": {"reason"}, "task_cancelled": {"reason"},
			"task_resumed":   {"reason", "wait_mode", "entry"},
			"task_suspended": {"wait_mode", "entry", "members", "wait_deadline_at"},
			"wait_timed_out": {"policy_applied", "wait_mode", "settled", "members", "timeout_duration_ms", "wait_deadline_at", "lag_ms"}}
		for _, name := range more[kind] {
			words = append(words, e.Fields[name])
		}
		told = append(told, strings.Join(words, " "))
		what := slices.Delete(words, 1, 2)
		if kind == "task_suspended" {
			what = what[:2] // the rest are numbers
		}
		p.seen[strings.Join(what[:min(3, len(what))], " ")]++
		switch kind {
		case "task_completed", "task_failed", "task_cancelled", "task_timed_out":
			p.told["end of "+id]++
		case "deadline_near":
			p.told["warning of "+id]++
		}
	}
	var reported []string // of the same changes
	for _, event := range told {
		if strings.HasPrefix(event, "task_timed_out ") || strings.HasPrefix(event, "task_resumed ") {
			reported = append(reported, strings.Join(strings.Fields(event)[:3], " "))
		}
	}
	slices.Sort(reported)
	slices.Sort(p.reports)
	p.same(t, "reports and events", p.reports, reported)
	p.reports = nil
	slices.Sort(told)
	slices.Sort(p.m.events)
	p.same(t, "events", told, p.m.events)
	p.m.events = nil
	for id, f := range s.Tasks {
		want := 1
		if audit.Live(f) {
			want = 0
		}
		if n := p.told["end of "+id]; n != want || p.told["warning of "+id] > 1 {
			t.Fatalf("%s is %s: it has %d events of its end and %d warnings", id, f["status"], n, p.told["warning of "+id])
		}
	}
}

// count counts states that no event shows.
func (p *player) count() {
	if p.m.heldClaims > 0 {
		p.seen["a held task is claimed"] += p.m.heldClaims
		p.m.heldClaims = 0
	}
	if len(p.m.throttled) > 0 {
		p.seen["a queue waits for its rate"]++
	}
	if len(p.m.taken) > 0 {
		p.seen["a token is taken"]++
	}
	for _, t := range p.m.tasks {
		if t.progress != "" {
			p.seen["a task has progress"]++
		}
		if t.progressAt != 0 && t.progressAt < t.started {
			p.seen["an attempt follows one that had progress"]++
		}
		if t.given["hook_of"] != "" && t.status == queue.Running {
			p.seen["a hook runs"]++
		}
		p.countAgent(t)
		if t.given["role"] == "timer" && t.status == queue.Completed && t.call == "" {
			p.seen["a timer fires"]++
		}
	}
}

// countAgent counts the states of an agent and its wait.
func (p *player) countAgent(t *modelTask) {
	w := t.wait
	if len(t.ends) > 0 && w == nil {
		p.seen["an end waits for its agent"]++
	}
	if t.handed > 1 {
		p.seen["an agent was given ends twice"]++
	}
	if t.woken && t.attemptAt != 0 {
		p.seen["a woken agent's attempt continues in line"]++
	}
	if t.notes["until"] != "" {
		p.seen["a limit outlives its attempt"]++
	}
	if w == nil {
		return
	}
	p.seen["a wait is "+w.state]++
	if p.m.awaited(t) {
		p.seen["an agent waits for an agent that waits"]++
	}
	for name := range w.pending {
		if member := p.m.tasks[t.id+"."+name]; !member.lives() {
			p.seen["a member ended after the limit"]++
		} else if member.cancelled != 0 {
			p.seen["a member gets its grace"]++
		}
	}
}

// everyReadyQueueIsWoken checks that a queue with ready tasks that it can give has a token for an
// idle worker, or that a worker has taken the token and not fetched yet. A queue that only lacks a
// token of its rate must be on the clock for when it gets one. This checks what Redis holds, not
// the model: a lost wake-up is the worst fault of a queue.
func (p *player) everyReadyQueueIsWoken(t *rapid.T, s *audit.Snapshot) {
	for key, ready := range s.Zsets {
		line, ok := strings.CutPrefix(key, "ready:")
		if !ok || len(ready) == 0 {
			continue
		}
		f := s.Hashes["queue:"+line]
		if f["paused"] != "" || f["max_running"] != "" && engine.Number(f["running"]) >= engine.Number(f["max_running"]) {
			continue
		}
		gives := float64(p.m.now)
		if f["rate"] != "" {
			every := float64(engine.Number(f["per_ms"])) / float64(engine.Number(f["rate"]))
			var full float64
			fmt.Sscan(f["full_at"], &full)
			if want := float64(p.m.queues[line].full) / float64(engine.Number(f["rate"])); full > gives && math.Abs(full-want) > 0.05 {
				t.Fatalf("the bucket of %s is full at %v in Redis, at %v in the model", line, full, want)
			}
			// It has a token again when all but burst-1 of them are back.
			gives = max(gives, math.Ceil(full-float64(engine.Number(f["burst"])-1)*every-0.05))
		}
		looked, waits := s.Zsets["throttled"][line]
		token := len(s.Lists["wake:"+line]) > 0 || p.m.taken[line]
		if !token && !(waits && looked <= max(gives, float64(p.m.now))+float64(p.behind)) {
			t.Fatalf("%s has %d ready tasks and can give one at %.0f (now %d), but wakes no worker: token %v, throttled until %.0f",
				line, len(ready), gives, p.m.now, token, looked)
		}
	}
}

// reaperSweepsOnTime checks that no clock has an instant earlier than the next sweep. The reaper that
// has the turn sweeps when its last sweep said, or when an alarm wakes it. It waits for a span, so a clock that was set back since
// does not make it late.
func (p *player) reaperSweepsOnTime(t *rapid.T, s *audit.Snapshot) {
	armed := engine.Number(s.Hashes[""]["armed"])
	if min(p.looks, armed)-p.behind <= p.m.now {
		return // a sweep is due now
	}
	for clock, strict := range map[string]int64{"deadlines": 1, "limits": 1, "workers": 1, "delayed": 0, "throttled": 0, "retained": 0, "draining": 0, "forget": 0, "waits": 1} {
		for member, at := range s.Zsets[clock] {
			if int64(at)+strict < armed-p.behind || armed > p.looks {
				t.Fatalf("%s of %s is at %.0f, but the reaper sweeps at %d (now %d)", clock, member, at, armed, p.m.now)
			}
		}
	}
}
