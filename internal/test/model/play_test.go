package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// The operations of a player. Each draws a call, makes it on Redis and on the model, and
// compares the answers.

func (p *player) enqueue(t *rapid.T) {
	var list []map[string]string
	for range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "tasks") {
		list = append(list, p.drawTask(t))
	}
	p.enqueueAll(t, list)
}

func (p *player) enqueueAll(t *rapid.T, list []map[string]string) {
	p.play(t, func(t *rapid.T) {
		tasks, gone := p.wired(list)
		if gone {
			return
		}
		var answers []string
		for _, words := range wire.Answers(tasks, p.run(t, "enqueue", wire.Tasks(tasks...)...)) {
			if engine.Text(words[0]) == "INVALID" {
				words = words[:2]
			}
			answers = append(answers, join(words))
		}
		p.same(t, "enqueue", fmt.Sprintf("%q", answers), fmt.Sprintf("%q", p.m.enqueue(list)))
	})
}

// wired returns tasks as calls take them. gone reports whether the record of one was removed: then
// the model cannot predict the answer.
func (p *player) wired(list []map[string]string) (tasks [][]any, gone bool) {
	for _, f := range list {
		gone = gone || p.m.removed[f["id"]]
		var task []any
		for _, name := range slices.Sorted(maps.Keys(f)) {
			task = append(task, name, f[name])
		}
		tasks = append(tasks, task)
	}
	return tasks, gone
}

func join(words []any) string {
	var all []string
	for _, w := range words {
		all = append(all, fmt.Sprint(w))
	}
	return strings.Join(all, " ")
}

func drawAsk(t *rapid.T, seq int64) claim.Ask {
	ask := claim.Ask{N: rapid.IntRange(1, 4).Draw(t, "n"), Seq: seq, Lease: 20 * time.Millisecond,
		Elsewhere: rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "elsewhere"), Rests: rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "rests")}
	for _, line := range rapid.SampledFrom([][]string{{"p", "q"}, {"p", "q"}, {"q", "p"}, {"q"}}).Draw(t, "queues") {
		ask.Quotas = append(ask.Quotas, claim.Quota{Queue: line, N: rapid.IntRange(0, 2).Draw(t, "quota")})
	}
	return ask
}

func (p *player) fetch(t *rapid.T) {
	if len(p.m.line("p"))+len(p.m.line("q"))+len(p.m.heldBefore) == 0 && !p.unusual(t) {
		p.enqueue(t)
		return
	}
	p.seq++
	p.fetchAs(t, drawWorker.Draw(t, "worker"), drawAsk(t, p.seq))
}

func (p *player) fetchAs(t *rapid.T, worker string, ask claim.Ask) {
	p.play(t, func(t *rapid.T) {
		trip, err := claim.Of(p.q).Fetch(p.ctx, 0, worker, ask)
		if err != nil {
			t.Fatal(err)
		}
		got, more, hint := p.m.fetch(worker, ask)
		p.same(t, "fetch", formatClaims(trip), fmt.Sprint(got, more, hint))
	})
}

// formatClaim formats a claim. The order of fields in a hook's payload is ignored.
func formatClaim(id string, epoch int64, payload string) string {
	var said map[string]any
	if json.Unmarshal([]byte(payload), &said) == nil {
		sorted, _ := json.Marshal(said)
		payload = string(sorted)
	}
	return fmt.Sprintf("%s@%d %s", id, epoch, payload)
}

func formatClaims(trip claim.Reply) string {
	var got []string
	for _, c := range trip.Claims {
		got = append(got, formatClaim(c.ID, c.Epoch, string(c.Payload)))
	}
	hint := map[[2]bool]string{{true, false}: "alone", {false, true}: "waits"}[[2]bool{trip.Alone, trip.Waits}]
	return fmt.Sprint(got, trip.More(), hint+strings.Join(trip.Errors, ","))
}

// await has an idle worker take the token of a queue, without fetching yet.
func (p *player) await(t *rapid.T) {
	line := drawQueue.Draw(t, "queue")
	if !p.m.wake[line] {
		p.enqueue(t)
		return
	}
	err := p.rdb.LPop(p.ctx, p.q.Engine().WakeKey(0, line)).Err()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	p.same(t, "token of "+line, err == nil, true)
	delete(p.m.wake, line)
	p.m.taken[line] = true
}

// drawID draws the id of a task, usually one for which meant is true, or "". A player
// that cannot do its operation then enqueues or fetches instead.
func (p *player) drawID(t *rapid.T, meant func(*modelTask) bool) string {
	all := slices.Sorted(maps.Keys(p.m.tasks))
	if !p.unusual(t) {
		list := slices.DeleteFunc(all, func(id string) bool { return !meant(p.m.tasks[id]) })
		if len(list) == 0 {
			return ""
		}
		return rapid.SampledFrom(list).Draw(t, "id")
	}
	return rapid.SampledFrom(append(all, "0-none")).Draw(t, "id")
}

// unusual is sometimes true: then the call is one that must be refused or change nothing.
func (p *player) unusual(t *rapid.T) bool { return rapid.IntRange(0, 5).Draw(t, "unusual") == 5 }

func (p *player) settle(t *rapid.T) {
	worker, call := drawWorker.Draw(t, "worker"), p.newCall()
	awaited := rapid.Bool().Draw(t, "awaited")
	id := p.drawID(t, func(t *modelTask) bool {
		return (t.status == queue.Running || t.status == queue.Pending && t.lostBy != "") && (!awaited || p.m.awaited(t))
	})
	if id == "" {
		p.fetch(t)
		return
	}
	epoch := int64(1)
	if known := p.m.tasks[id]; known != nil {
		epoch = known.epoch - rapid.SampledFrom([]int64{0, 0, 0, 1}).Draw(t, "stale")
		if holder := known.worker + known.lostBy; holder != "" && known.lives() {
			worker = holder
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "a call of its own") == 0 { // several workers use the same name
		call = "S1"
	}
	outcomes := []queue.Outcome{p.drawOutcome(t, id, epoch)}
	if p.unusual(t) {
		outcomes = append(outcomes, p.drawOutcome(t, id, epoch))
	}
	for _, other := range p.m.held(worker) {
		if other.id != id && rapid.IntRange(0, 3).Draw(t, "together with "+other.id) == 3 {
			outcomes = append(outcomes, p.drawOutcome(t, other.id, other.epoch))
		}
	}
	var ask claim.Ask
	if rapid.Bool().Draw(t, "asks") {
		p.seq++
		ask = drawAsk(t, p.seq)
	}
	p.play(t, func(t *rapid.T) {
		trip, err := claim.Of(p.q).Settle(p.ctx, 0, worker, call, outcomes, ask)
		if err != nil {
			t.Fatal(err)
		}
		var verdicts []string
		for _, v := range trip.Verdicts {
			verdicts = append(verdicts, string(v.Word)+" "+string(v.Status))
		}
		p.same(t, "settle "+id, verdicts, p.m.settle(worker, call, outcomes))
		if ask.N > 0 {
			got, more, hint := p.m.fetch(worker, ask)
			p.same(t, "next", formatClaims(trip), fmt.Sprint(got, more, hint))
		}
	})
}

func (p *player) heartbeat(t *rapid.T) {
	worker := drawWorker.Draw(t, "worker")
	if len(p.m.held(worker)) == 0 && !p.unusual(t) {
		p.fetch(t)
		return
	}
	lease := rapid.SampledFrom([]int64{20, 20, 20, 0}).Draw(t, "lease")
	known := int64(0)
	if rapid.Bool().Draw(t, "known") {
		known = p.m.fetched[worker]
	}
	var held []claim.Held
	for _, task := range p.m.held(worker) {
		if rapid.IntRange(0, 3).Draw(t, "holds") > 0 {
			held = append(held, claim.Held{ID: task.id, Epoch: task.epoch, Progress: drawProgress.Draw(t, "progress")})
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "strange") == 0 {
		if id := p.drawID(t, (*modelTask).lives); id != "" {
			held = append(held, claim.Held{ID: id, Epoch: 1, Progress: drawProgress.Draw(t, "progress")})
		}
	}
	p.play(t, func(t *rapid.T) {
		stops, err := claim.Of(p.q).Heartbeat(p.ctx, 0, worker, time.Duration(lease)*time.Millisecond, known, held)
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
	awaited, call := rapid.Bool().Draw(t, "awaited"), p.newCall()
	id := p.drawID(t, func(t *modelTask) bool { return t.lives() && (!awaited || p.m.awaited(t)) })
	if id == "" {
		p.enqueue(t)
		return
	}
	reason := rapid.SampledFrom([]string{"why", ""}).Draw(t, "reason")
	p.play(t, func(t *rapid.T) {
		answer := p.run(t, "cancel", call, reason, "", id).([]any)[0].([]any)
		p.same(t, "cancel "+id, join(answer), p.m.cancel(call, reason, id))
	})
}

func (p *player) resolve(t *rapid.T) {
	awaited := rapid.Bool().Draw(t, "awaited")
	id := p.drawID(t, func(t *modelTask) bool { return t.lives() && t.given["role"] != "" && (!awaited || p.m.awaited(t)) })
	if id == "" {
		p.enqueue(t)
		return
	}
	verb, call := rapid.SampledFrom([]string{"complete", "fail"}).Draw(t, "verb"), p.newCall()
	p.play(t, func(t *rapid.T) {
		answer := p.run(t, "resolve", call, verb, id, "note").([]any)[0].([]any)
		if engine.Text(answer[0]) == "INVALID" {
			answer = answer[:2]
		}
		p.same(t, "resolve "+id, join(answer), p.m.resolve(call, verb, id, "note"))
	})
}

func (p *player) control(t *rapid.T) {
	line := drawQueue.Draw(t, "queue")
	controls := rapid.SampledFrom([]map[string]string{
		{"rate": "1", "per_ms": "5", "burst": "1"}, {"paused": ""}, {"max_running": "2"}, {"max_running": "1"}, {"max_running": ""},
		{"rate": "3", "per_ms": "10", "burst": "3"}, {"max_running": ""}, {"rate": "", "per_ms": "", "burst": ""},
		{"rate": "2", "per_ms": "5", "burst": "1"}, {"paused": "", "max_running": "1", "rate": "1", "per_ms": "2", "burst": "2"},
		{"paused": "1"}, {"max_length": "1"}, {"max_length": "4"}, {"max_length": ""}, {"max_length": ""},
	}).Draw(t, "controls")
	p.play(t, func(t *rapid.T) {
		args := []any{line}
		for _, name := range slices.Sorted(maps.Keys(controls)) {
			args = append(args, name, controls[name])
		}
		p.same(t, "control "+line, join(p.run(t, "control", args...).([]any)), p.m.control(line, controls))
	})
}

func (p *player) drain(t *rapid.T) {
	line, call := drawQueue.Draw(t, "queue"), p.newCall()
	if len(p.m.line(line)) == 0 && !p.unusual(t) {
		p.enqueue(t)
		return
	}
	most := rapid.IntRange(1, 3).Draw(t, "most")
	seq, front := p.m.seq, p.m.front
	since := []any{}
	if rapid.Bool().Draw(t, "since") {
		seq, front = max(seq-rapid.Int64Range(0, 5).Draw(t, "joined"), 0), min(front+rapid.Int64Range(0, 2).Draw(t, "given back"), 0)
		since = []any{seq, front}
	}
	p.play(t, func(t *rapid.T) {
		if len(since) == 0 {
			seq, front = p.m.seq, p.m.front
		}
		args := append([]any{call, line, most, "drained"}, since...)
		p.same(t, "drain "+line, join(p.run(t, "drain", args...).([]any)), p.m.drainLine(call, line, most, seq, front))
	})
}

func (p *player) configure(t *rapid.T) {
	p.m.timeout = rapid.SampledFrom([]int64{0, 0, 5, 15}).Draw(t, "default timeout")
	word := cmp.Or(zeroless(p.m.timeout), "none")
	p.same(t, "configure "+word, join(p.run(t, "configure", "default_timeout_ms", word).([]any)), "OK")
}

func (p *player) define(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "of the namespace") == 0 {
		p.configure(t)
		return
	}
	kind := rapid.SampledFrom([]string{"d", "h", "signal"}).Draw(t, "kind")
	defaults := rapid.SampledFrom([]map[string]string{
		{}, {"timeout_ms": "10"}, {"timeout_ms": "20", "warn_percent": "50", "attempt_timeout_ms": "5"},
		{"max_retries": "2", "on_timeout": "retry", "attempt_timeout_ms": "5", "backoff": "exponential", "backoff_ms": "3", "backoff_max_ms": "10", "jitter": "50"},
		{"queue_timeout_ms": "5", "cancel_grace_ms": "5"}, {"max_retries": "1", "retry_expression": "e", "on_timeout": "retry", "retention_ms": "60000"}, {"max_retries": "1", "backoff_ms": "0"},
		{"max_retries": "0", "backoff_ms": "3"},
		{"hook_success": "d", "hook_failure": "h q", "hook_timeout": "d p", "hook_cancel": "h"},
	}).Draw(t, "defaults")
	args := []any{kind}
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		args = append(args, name, defaults[name])
	}
	p.same(t, "define "+kind, join(p.run(t, "define", args...).([]any)), "OK")
	p.m.define(kind, defaults)
}
