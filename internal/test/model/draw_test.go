package model

import (
	"fmt"
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// Few names and short times, so that operations collide.
var (
	drawWorker = rapid.SampledFrom([]string{"w1", "w2"})
	drawQueue  = rapid.SampledFrom([]string{"p", "q"})
	// The progress that an attempt reports; usually none.
	drawProgress = rapid.SampledFrom([]string{"", "", "some", "most"})
	drawSpan     = rapid.SampledFrom([]int64{0, 50, 0, 10, 20, 5, 2, 1})
)

// drawNewID draws the id of a task, from few roots. If the task of a root has ended, sometimes a
// new root is used. Most children have a live owner.
func (p *player) drawNewID(t *rapid.T) string {
	root := rapid.SampledFrom([]string{"0-a", "0-b", "0-c", "0-d"}).Draw(t, "root")
	ended := func(id string) bool { return p.m.tasks[id] != nil && !p.m.tasks[id].lives() }
	for p.m.removed[root] || ended(root) && rapid.IntRange(0, 3).Draw(t, "new") > 0 {
		root += "a"
	}
	if rapid.IntRange(0, 20).Draw(t, "orphan") == 20 {
		return root + ".1"
	}
	branches := []string{"", "", ""}
	for _, branch := range []string{".1", ".2", ".1.x", "!failure.1", "!cancel.1", "!success.1"} {
		if p.m.tasks[names.OwnerOf(root+branch)].lives() {
			branches = append(branches, branch, branch)
		}
	}
	return root + rapid.SampledFrom(branches).Draw(t, "branch")
}

// drawTask draws the fields of a task as a producer sends them. Most tasks are plain, so that
// other tasks collide with tasks that run and end.
func (p *player) drawTask(t *rapid.T) map[string]string { return p.drawFields(t, p.drawNewID(t)) }

func (p *player) drawFields(t *rapid.T, id string) map[string]string {
	f := map[string]string{"id": id, "queue": drawQueue.Draw(t, "queue"),
		"kind": rapid.SampledFrom([]string{"k", "d"}).Draw(t, "kind")}
	one := func(name string, values ...string) {
		if value := rapid.SampledFrom(append([]string{"", "", ""}, values...)).Draw(t, name); value != "" {
			f[name] = value
		}
	}
	one("payload", "x")
	one("role", "promise", "timer")
	one("retention_ms", "60000", "none")
	if f["role"] == "" {
		p.drawPolicy(t, f, one)
	}
	if rapid.IntRange(0, 3).Draw(t, "hooks") == 0 {
		one("hook_success", "h", "d q", "none")
		one("hook_failure", "h q", "d p", "h p")
		one("hook_timeout", "h p", "d", "none")
		one("hook_cancel", "h", "d q", "none")
	}
	if names.OwnerOf(f["id"]) == "" {
		one("idempotency_key", "key", "other")
	}
	if f["idempotency_key"] != "" {
		one("idempotency_scope", "started", "finished", "window")
		if f["idempotency_scope"] == "window" {
			f["idempotency_window_ms"] = rapid.SampledFrom([]string{"1", "5", "50", "86400000"}).Draw(t, "window")
		}
	}
	one("on_deadline", "fail", "cancel_all")
	p.drawTimes(t, f)
	return f
}

// drawPolicy draws fields that are used together, or each field by itself.
func (p *player) drawPolicy(t *rapid.T, f map[string]string, one func(string, ...string)) {
	maps.Copy(f, rapid.SampledFrom([]map[string]string{
		{}, {}, {"max_retries": "2"}, {"max_retries": "2", "backoff_ms": "none"},
		{"max_retries": "3", "on_timeout": "retry", "attempt_timeout_ms": "1", "backoff_ms": "0"},
		{"max_retries": "2", "backoff_ms": "1000", "backoff": "exponential", "jitter": "50"}, {"cancel_grace_ms": "5"},
		{"max_retries": "2", "on_timeout": "retry", "attempt_timeout_ms": "2", "backoff_ms": "2", "cancel_grace_ms": "5"},
		{"max_retries": "1", "retry_expression": "e", "on_timeout": "fail: no answer", "attempt_timeout_ms": "5", "backoff_ms": "none"},
		{"attempt_timeout_ms": "5", "cancel_grace_ms": "10"},
	}).Draw(t, "policy"))
	one("priority", "1", "3")
	if rapid.Bool().Draw(t, "as it is") {
		return
	}
	one("max_retries", "1", "2", "2", "0")
	one("queue_timeout_ms", "1", "5", "none")
	one("attempt_timeout_ms", "1", "5", "10", "none")
	one("cancel_grace_ms", "2", "5", "5", "none")
	if f["max_retries"] != "" || p.unusual(t) {
		one("on_timeout", "retry", "retry", "fail", "fail: no answer")
		one("retry_expression", "e")
		one("backoff_ms", "0", "3", "4", "none")
		one("backoff", "exponential", "exponential", "constant")
		one("backoff_max_ms", "5")
		one("jitter", "50", "100")
	}
}

// drawTimes draws instants and not durations, so that a repeat of the call is the same call.
func (p *player) drawTimes(t *rapid.T, f map[string]string) {
	if span := drawSpan.Draw(t, "timeout"); span != 0 {
		f["deadline_at"] = fmt.Sprint(p.m.now + span)
	} else if rapid.IntRange(0, 3).Draw(t, "no timeout") == 0 {
		f["timeout_ms"] = "none"
	}
	if names.OwnerOf(f["id"]) != "" || p.unusual(t) {
		switch rapid.IntRange(0, 5).Draw(t, "of its owner") {
		case 5:
			f["default_timeout_ms"] = "20"
		case 4:
			f["budget_percent"] = "50"
		}
	}
	if f["deadline_at"] != "" && rapid.Bool().Draw(t, "warns") || rapid.IntRange(0, 20).Draw(t, "warns of nothing") == 20 {
		f["warn_percent"] = "50"
	}
	delay := rapid.SampledFrom([]int64{0, 0, 0, 3, 1}).Draw(t, "delay")
	if f["role"] == "timer" || f["role"] == "" && delay != 0 {
		f["available_at"] = fmt.Sprint(p.m.now + delay)
	}
}

// drawOutcome draws a worker's report on a claim.
func (p *player) drawOutcome(t *rapid.T, id string, epoch int64) queue.Outcome {
	verbs := []queue.Verb{queue.Fail, queue.Complete, queue.Fail, queue.Release}
	if p.unfit {
		verbs = []queue.Verb{queue.Release, queue.Release, queue.Complete}
	}
	verb := rapid.SampledFrom(verbs).Draw(t, "verb")
	if verb == queue.Release && (p.unfit || rapid.Bool().Draw(t, "no handler")) {
		return queue.Outcome{ID: id, Epoch: epoch, Verb: verb, Class: queue.ClassNoHandler, Error: "no handler",
			Delay: time.Duration(rapid.SampledFrom([]int{0, 3, 3}).Draw(t, "delay")) * time.Millisecond}
	}
	return queue.Outcome{ID: id, Epoch: epoch, Verb: verb,
		Class: rapid.SampledFrom([]queue.Class{queue.ClassError, queue.ClassError, queue.ClassTimeout, queue.ClassDeadline, queue.ClassFailed}).Draw(t, "class"),
		Delay: time.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "delay")) * time.Millisecond,
		Retry: rapid.SampledFrom([]string{"", "retry", "fail", "fail: no answer"}).Draw(t, "verdict"),
		Code:  rapid.SampledFrom([]int{0, 7}).Draw(t, "code"), Error: rapid.SampledFrom([]string{"boom", "boom", "b\xff"}).Draw(t, "error"), Result: []byte("done")}
}
