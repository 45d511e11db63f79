package queue

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/testclock"
)

// TestModel plays random operations by several clients on Redis and on the model,
// with few names and small times so that they collide, and compares every answer
// and, after each step, the whole state; and the audit must find nothing.
func TestModel(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	library := testclock.Library(t, rdb)
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		checks := "600"
		switch {
		case os.Getenv("CURFEW_LONG") != "":
			checks = "20000"
		case testing.Short():
			checks = "60"
		}
		flag.Set("rapid.checks", checks)
	}
	sequences := 0
	rapid.Check(t, func(rt *rapid.T) {
		sequences++
		ctx := context.Background()
		rdb.FlushDB(ctx)
		q, err := Open(ctx, rdb, Config{Namespace: "model", Library: library})
		if err != nil {
			rt.Fatal(err)
		}
		p := &player{T: rt, ctx: ctx, rdb: rdb, q: q, m: newModel(testclock.Start.UnixMilli())}
		rt.Repeat(map[string]func(*rapid.T){
			"enqueue": p.enqueue, "fetch": p.fetch, "settle": p.settle, "heartbeat": p.heartbeat,
			"cancel": p.cancel, "sweep": p.sweep, "advance": p.advance, "repeat": p.repeat, "": p.compare,
		})
	})
	t.Logf("sequences: %d", sequences)
}

// player plays one sequence.
type player struct {
	*rapid.T
	ctx  context.Context
	rdb  *redis.Client
	q    *Queue
	m    *model
	seq  int64
	last func(*rapid.T) // the newest call, again
}

func (p *player) same(t *rapid.T, what string, redis, model any) {
	if fmt.Sprint(redis) != fmt.Sprint(model) {
		t.Fatalf("%s: Redis says %v, the model %v", what, redis, model)
	}
}

var (
	modelIDs     = rapid.SampledFrom([]string{"0-a", "0-b", "0-c", "0-d", "0-a.1", "0-a.2", "0-b.1", "0-a.1.x"})
	modelWorkers = rapid.SampledFrom([]string{"w1", "w2"})
	modelQueues  = rapid.SampledFrom([]string{"p", "q"})
	modelSpans   = rapid.SampledFrom([]int64{0, 0, 1, 2, 5, 10, 50})
)

func (p *player) enqueue(t *rapid.T) {
	n := modelTask{id: modelIDs.Draw(t, "id"), queue: modelQueues.Draw(t, "queue"), payload: rapid.SampledFrom([]string{"", "x"}).Draw(t, "payload"),
		priority: rapid.IntRange(0, 3).Draw(t, "priority"), maxRetries: int64(rapid.IntRange(0, 2).Draw(t, "retries")),
		queueTimeout: modelSpans.Draw(t, "queue timeout"), attemptTimeout: modelSpans.Draw(t, "attempt timeout"),
		retention: rapid.SampledFrom([]int64{0, 60_000}).Draw(t, "retention")}
	if parentOf(n.id) == "" {
		n.key = rapid.SampledFrom([]string{"", "", "", "key"}).Draw(t, "key")
	}
	fields := []any{"id", n.id, "kind", "k", "queue", n.queue}
	add := func(name string, value any) { fields = append(fields, name, value) }
	if n.payload != "" {
		add("payload", n.payload)
	}
	if n.key != "" {
		add("idempotency_key", n.key)
	}
	if n.priority != 0 {
		add("priority", n.priority)
	}
	if n.maxRetries != 0 {
		add("max_retries", n.maxRetries)
	}
	if n.retention != 0 {
		add("retention_ms", n.retention)
	}
	if n.queueTimeout != 0 {
		add("queue_timeout_ms", n.queueTimeout)
	}
	if n.attemptTimeout != 0 {
		add("attempt_timeout_ms", n.attemptTimeout)
	}
	// Instants, not spans, so that a repeat of the call is the same call.
	if span := modelSpans.Draw(t, "timeout"); span != 0 {
		n.deadline = p.m.now + span
		add("deadline_at", n.deadline)
	}
	if span := rapid.SampledFrom([]int64{0, 0, 0, 3}).Draw(t, "delay"); span != 0 && (n.deadline == 0 || n.deadline >= p.m.now+span) {
		n.available = p.m.now + span
		add("available_at", n.available)
	}
	p.play(t, func(t *rapid.T) {
		if p.m.removed[n.id] {
			return
		}
		late := n.deadline != 0 && n.deadline < p.m.now && p.m.tasks[n.id] == nil
		if _, known := p.m.keys[n.key]; late && !(n.key != "" && known) {
			return // a repeat of what was never accepted: refused for its time
		}
		reply, err := p.q.library.Run(p.ctx, p.rdb, "enqueue", p.q.Root(0), append([]any{len(fields) / 2}, fields...)...)
		if err != nil {
			t.Fatal(err)
		}
		row := reply.([]any)[0].([]any)
		p.same(t, "enqueue "+n.id, fmt.Sprint(row[0], " ", row[1]), p.m.enqueue(n))
	})
}

// play makes a call, and keeps it for a repeat.
func (p *player) play(t *rapid.T, call func(*rapid.T)) {
	p.last = call
	call(t)
}

// repeat makes the newest call again: the answer was lost.
func (p *player) repeat(t *rapid.T) {
	if p.last != nil {
		p.last(t)
	}
}

func (p *player) fetch(t *rapid.T) {
	p.seq++
	worker := modelWorkers.Draw(t, "worker")
	ask := Ask{N: rapid.IntRange(1, 4).Draw(t, "n"), Seq: p.seq, Lease: 20 * time.Millisecond,
		Quotas: []Quota{{"p", rapid.IntRange(0, 2).Draw(t, "p")}, {"q", rapid.IntRange(0, 2).Draw(t, "q")}}}
	p.play(t, func(t *rapid.T) {
		trip, err := p.q.Fetch(p.ctx, 0, worker, ask)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range trip.Claims {
			got = append(got, fmt.Sprintf("%s@%d", c.ID, c.Epoch))
		}
		p.same(t, "fetch", got, p.m.fetch(worker, ask))
	})
}

func (p *player) settle(t *rapid.T) {
	worker, call := modelWorkers.Draw(t, "worker"), NewCall()
	id := modelIDs.Draw(t, "id")
	epoch := int64(rapid.IntRange(0, 1).Draw(t, "stale"))
	if known := p.m.tasks[id]; known != nil {
		epoch = known.epoch - epoch
		if known.worker != "" {
			worker = known.worker
		}
	}
	o := Outcome{ID: id, Epoch: epoch, Verb: rapid.SampledFrom([]Verb{Complete, Complete, Fail, Release}).Draw(t, "verb"),
		Class: rapid.SampledFrom([]string{ClassError, ClassError, ClassFailed, ClassTimeout}).Draw(t, "class"),
		Delay: time.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "delay")) * time.Millisecond, Error: "boom", Result: []byte("done")}
	p.play(t, func(t *rapid.T) {
		trip, err := p.q.Settle(p.ctx, 0, worker, call, []Outcome{o}, Ask{})
		if err != nil {
			t.Fatal(err)
		}
		p.same(t, "settle "+id, trip.Verdicts[0].Word+" "+string(trip.Verdicts[0].Status), p.m.settle(worker, call, o))
	})
}

func (p *player) heartbeat(t *rapid.T) {
	worker := modelWorkers.Draw(t, "worker")
	lease := rapid.SampledFrom([]int64{20, 20, 20, 0}).Draw(t, "lease")
	known := int64(0)
	if rapid.Bool().Draw(t, "known") {
		known = p.m.fetched[worker]
	}
	var held []Held
	for _, task := range p.m.held(worker) {
		if rapid.IntRange(0, 3).Draw(t, "holds") > 0 {
			held = append(held, Held{task.id, task.epoch})
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "strange") == 0 {
		held = append(held, Held{modelIDs.Draw(t, "id"), 1})
	}
	p.play(t, func(t *rapid.T) {
		stops, err := p.q.Heartbeat(p.ctx, 0, worker, time.Duration(lease)*time.Millisecond, known, held)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, s := range stops {
			told = append(told, s.ID+" "+s.Reason)
		}
		p.same(t, "heartbeat", told, p.m.heartbeat(worker, lease, known, held))
	})
}

func (p *player) cancel(t *rapid.T) {
	id, call := modelIDs.Draw(t, "id"), NewCall()
	p.play(t, func(t *rapid.T) {
		reply, err := p.q.library.Run(p.ctx, p.rdb, "cancel", p.q.Root(0), call, "why", id)
		if err != nil {
			t.Fatal(err)
		}
		p.same(t, "cancel "+id, reply.([]any)[0].([]any)[0], p.m.cancel(call, "why", id))
	})
}

func (p *player) sweep(t *rapid.T) {
	if _, err := p.q.Sweep(p.ctx, 0, "r", 100, time.Second); err != nil {
		t.Fatal(err)
	}
	p.m.sweep()
}

func (p *player) advance(t *rapid.T) {
	p.m.now += rapid.SampledFrom([]int64{1, 1, 2, 5, 10, 21, 60_000, 900_000}).Draw(t, "ms")
	if err := p.rdb.Set(p.ctx, p.q.Root(0)+":clock", p.m.now, 0).Err(); err != nil {
		t.Fatal(err)
	}
}

// compare compares the whole state, and audits it.
func (p *player) compare(t *rapid.T) {
	s, err := p.q.snapshot(p.ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.odd = slices.DeleteFunc(s.odd, func(key string) bool { return key == "clock" })
	if redis, model := tellSnapshot(s), tellModel(p.m); redis != model {
		t.Fatalf("state\n--- Redis\n%s\n--- model\n%s", redis, model)
	}
	a := audit{snapshot: s}
	a.run()
	if len(a.findings) > 0 {
		t.Fatalf("audit: %v\n%s", a.findings, tellSnapshot(s))
	}
}

// tellSnapshot and tellModel tell the same state in the same words.
func tellSnapshot(s *snapshot) string {
	var lines []string
	for id, f := range s.tasks {
		n := func(name string) string { return strconv.FormatInt(number(f[name]), 10) }
		available := n("available_at")
		if f["status"] != "PENDING" {
			available = "0"
		}
		limit := n("limit_at")
		if Status(f["status"]).Ended() {
			limit = "0"
		}
		worker, lost := f["worker"], f["lost_by"]
		if Status(f["status"]).Ended() {
			worker, lost = "", ""
		}
		lines = append(lines, strings.Join([]string{"task", id, f["status"], f["queue"], n("deadline_at"), n("until"), limit, available,
			n("epoch"), n("retries"), n("lease_losses"), worker, lost, f["call"], f["requeued_by"], n("completed_at"), n("detected_at"),
			f["result"], f["error"], f["last_error"], f["reason"], f["timeout_type"]}, "|"))
	}
	for key, members := range s.zsets {
		kind, name, _ := strings.Cut(key, ":")
		switch kind {
		case "ready":
			lines = append(lines, fmt.Sprint("ready ", name, " ", due(whole(members), 1<<60)))
		case "claims":
			lines = append(lines, fmt.Sprint("claims ", name, " ", due(whole(members), 1<<60)))
		case "draining", "retained", "workers", "forget":
			lines = append(lines, fmt.Sprint(kind, " ", whole(members)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func whole(members map[string]float64) map[string]int64 {
	n := map[string]int64{}
	for id, score := range members {
		n[id] = int64(score)
	}
	return n
}

func tellModel(m *model) string {
	var lines []string
	for id, t := range m.tasks {
		limit, worker, lost := t.limit, t.worker, t.lostBy
		if !t.lives() {
			limit, worker, lost = 0, "", ""
		}
		available := t.available
		if t.status != Pending {
			available = 0
		}
		lines = append(lines, strings.Join([]string{"task", id, string(t.status), t.queue, fmt.Sprint(t.deadline), fmt.Sprint(t.until),
			fmt.Sprint(limit), fmt.Sprint(available), fmt.Sprint(t.epoch), fmt.Sprint(t.retries), fmt.Sprint(t.losses), worker, lost, t.call, t.requeuedBy,
			fmt.Sprint(t.completed), fmt.Sprint(t.detected), t.result, t.failure, t.lastError, t.reason, t.timeoutType}, "|"))
	}
	for _, queue := range []string{"p", "q"} {
		var ids []string
		for _, t := range m.line(queue) {
			ids = append(ids, t.id)
		}
		if ids != nil {
			lines = append(lines, fmt.Sprint("ready ", queue, " ", ids))
		}
	}
	for _, worker := range []string{"w1", "w2"} {
		var ids []string
		for _, t := range m.held(worker) {
			ids = append(ids, t.id)
		}
		if ids != nil {
			lines = append(lines, fmt.Sprint("claims ", worker, " ", ids))
		}
	}
	for name, clock := range map[string]map[string]int64{"draining": m.drain, "retained": m.goes, "workers": m.workers, "forget": m.forget} {
		if len(clock) > 0 {
			lines = append(lines, fmt.Sprint(name, " ", clock))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
