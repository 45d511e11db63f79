package model

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// enqueue adds tasks, given by their fields as sent, and returns the answer for each.
func (m *model) enqueue(list []map[string]string) []string {
	var answers []string
	for _, f := range list {
		answers = append(answers, m.take(f))
	}
	m.done()
	return answers
}

func (m *model) take(f map[string]string) string {
	t, answer := m.consider(f)
	if answer == "" {
		m.admit(t, f)
		answer = "OK " + t.id + " " + zeroless(t.deadline)
	}
	return answer
}

// consider returns the task that a call would make, or an answer if it is not made.
func (m *model) consider(f map[string]string) (*modelTask, string) {
	id, kind := f["id"], f["kind"]
	retries := f["max_retries"]
	if retries == "" {
		retries = m.kinds[kind]["max_retries"]
	}
	if old := m.tasks[id]; old != nil {
		if old.given["kind"] == kind && old.queue() == f["queue"] && old.payload == f["payload"] {
			return nil, "OK " + id + " " + zeroless(old.deadline)
		}
		return nil, "TAKEN " + id
	}
	if answer := m.known(f); answer != "" {
		return nil, answer
	}
	switch {
	case f["retry_expression"] != "" && engine.Number(retries) < 1:
		return nil, "INVALID retry_expression"
	case f["on_timeout"] == "retry" && engine.Number(retries) < 1:
		return nil, "INVALID on_timeout"
	}

	t := &modelTask{id: id, payload: f["payload"], given: m.fill(f)}
	if t.given["retry_expression"] != "" && t.given["attempt_timeout_ms"] != "" && t.given["on_timeout"] == "" {
		return nil, "INVALID on_timeout" // nobody could evaluate the expression
	}
	var owner *modelTask
	var bound int64
	if p := names.OwnerOf(id); p != "" {
		if owner = m.touch(p); !owner.lives() {
			if owner == nil {
				return nil, "OWNER " + p + " "
			}
			m.refuse(owner, "enqueue", "")
			return nil, "OWNER " + p + " " + string(owner.status)
		}
		bound = owner.final()
	}
	if t.given["budget_percent"] != "" && bound == 0 {
		return nil, "INVALID budget_percent"
	}
	t.deadline = m.deadline(t, f, bound)
	start, window := engine.Number(f["available_at"]), t.ms("idempotency_window_ms")
	switch {
	case t.deadline != 0 && t.deadline < m.now:
		return nil, "INVALID deadline_at"
	case t.deadline != 0 && start > t.deadline:
		return nil, "INVALID available_at"
	case window != 0 && t.deadline != 0 && m.now+window < t.deadline:
		return nil, "INVALID idempotency_window_ms"
	}
	if own := f["timeout_ms"] + f["deadline_at"]; own == "" && t.deadline == 0 && owner == nil && f["role"] == "" && m.timeout != 0 {
		t.deadline = max(m.now, start) + m.timeout
	}
	if f["role"] == "timer" {
		t.available = max(start, m.now) // it completes no sooner than it is made
	} else if start > m.now {
		t.available = start
	}
	// Of equal instants the owner's counts.
	if bound != 0 && (t.deadline == 0 || t.deadline >= bound) {
		t.until, t.untilOf = bound, cmp.Or(owner.untilOf, owner.id)
	}
	if f["warn_percent"] != "" && t.final() == 0 {
		return nil, "INVALID warn_percent"
	}
	if owner == nil && m.full(t) {
		m.list(t.queue()).counts["refused"]++
		return nil, fmt.Sprint("FULL ", t.queue(), " ", m.list(t.queue()).controls["max_length"])
	}
	return t, ""
}

// full reports whether no place in line is left for a new root task.
func (m *model) full(t *modelTask) bool {
	q := m.queues[t.queue()]
	if q == nil || q.control("max_length") == 0 || t.available != 0 || t.given["role"] != "" || t.given["retry_of"] != "" {
		return false
	}
	var length int64
	for _, o := range m.tasks {
		if o.queue() == t.queue() && o.status == queue.Pending && o.available == 0 && o.given["role"] == "" {
			length++
		}
	}
	return length >= q.control("max_length")
}

// deadline returns the deadline of a new task: by its own time, or by its share of the owner's
// remaining time. A default counts from the start of a delayed task.
func (m *model) deadline(t *modelTask, f map[string]string, bound int64) int64 {
	at := engine.Number(f["deadline_at"])
	if span := t.ms("timeout_ms"); span != 0 {
		at = m.now + span
		if f["timeout_ms"] == "" {
			at = max(m.now, engine.Number(f["available_at"])) + span
		}
	}
	if percent := t.ms("budget_percent"); percent != 0 {
		share := m.now + (bound-m.now)*percent/100
		if at == 0 || share < at {
			at = share
		}
	}
	return at
}

// admit makes a task that consider has accepted.
func (m *model) admit(t *modelTask, f map[string]string) {
	window := t.ms("idempotency_window_ms")
	for _, name := range []string{"timeout_ms", "deadline_at", "available_at", "idempotency_window_ms", "budget_percent", "default_timeout_ms"} {
		delete(t.given, name)
	}
	if owner := m.tasks[names.OwnerOf(t.id)]; owner != nil {
		owner.children = append(owner.children, t.id)
		owner.born++
	}
	if key := f["idempotency_key"]; key != "" {
		m.keys[key] = modelKey{t.id, content(f)}
		if window != 0 {
			m.forget[key] = m.now + window
		}
	}
	m.create(t)
}

func content(f map[string]string) string { return f["kind"] + "\n" + f["payload"] }

// known returns the answer if the idempotency key belongs to a task, "" if the key is free.
func (m *model) known(f map[string]string) string {
	name := f["idempotency_key"]
	key, there := m.keys[name]
	if !there {
		return ""
	}
	if at, leaving := m.forget[name]; leaving && at <= m.now {
		delete(m.keys, name)
		delete(m.forget, name)
		return ""
	}
	first := m.touch(key.id)
	if m.keys[name] != key {
		return "" // the key belonged to the task until its end, which is now
	}
	word, deadline := "KNOWN", ""
	if first != nil {
		deadline = zeroless(first.deadline)
	}
	switch {
	case key.content != content(f):
		return "CONFLICT " + key.id
	case key.id == f["id"]:
		word = "OK"
	}
	return word + " " + key.id + " " + deadline
}

// fill returns the fields of a task, with the defaults of its kind for fields that its producer did
// not give.
func (m *model) fill(f map[string]string) map[string]string {
	given := maps.Clone(f)
	defaults := m.kinds[f["kind"]]
	if names.OwnerOf(f["id"]) != "" && f["role"] != "" && f["kind"] == "signal" {
		defaults = nil // agents make it for themselves
	}
	for name, value := range defaults {
		_, said := given[name]
		hook := strings.HasPrefix(name, "hook_")
		if !said && (f["role"] == "" || hook || name == "timeout_ms" || name == "retention_ms") && !(hook && f["hook_of"] != "") {
			given[name] = value
		}
	}
	if f["retry_expression"] != "" && f["on_timeout"] == "" {
		delete(given, "on_timeout") // the kind's is of another expression
	}
	if f["deadline_at"] != "" {
		delete(given, "timeout_ms")
	}
	if engine.Number(given["max_retries"]) > 0 && given["backoff_ms"] == "" && given["node"] == "" {
		given["usual_backoff"] = "yes"
	}
	maps.DeleteFunc(given, func(_, value string) bool { return value == "none" })
	// The owner's default for its children comes last.
	if span := given["default_timeout_ms"]; span != "" && f["timeout_ms"] == "" && f["deadline_at"] == "" && given["timeout_ms"] == "" {
		given["timeout_ms"] = span
	}
	if engine.Number(given["max_retries"]) == 0 {
		delete(given, "on_timeout")
		delete(given, "retry_expression")
	}
	delete(given, "id")
	delete(given, "payload")
	return given
}

// create puts a task in line, among the delayed tasks, or in neither.
func (m *model) create(t *modelTask) {
	t.status, t.created = queue.Pending, m.now
	if m.least > m.now {
		t.number = m.least
	}
	if of := m.tasks[cmp.Or(names.OwnerOf(t.id), t.given["hook_of"])]; of != nil {
		t.ofNumber = cmp.Or(of.number, of.created)
	}
	if percent := t.ms("warn_percent"); percent != 0 && t.final() != 0 {
		t.warn = m.now + (t.final()-m.now)*percent/100
	}
	if t.given["usual_backoff"] != "" {
		m.setBackoff(t)
	}
	m.tasks[t.id] = t
	m.list(t.queue()).counts["enqueued"]++
	m.figureNew(t)
	if t.available == 0 && t.given["role"] == "" {
		m.ready(t, false, m.now, 0)
	} else if span := t.ms("queue_timeout_ms"); span != 0 && t.given["role"] == "" {
		m.setLimit(t, t.available+span)
	}
	m.emit("task_enqueued", t.id)
}

// setBackoff gives a task the usual back-off, which leaves half of its time for its attempts.
func (m *model) setBackoff(t *modelTask) {
	longest := cmp.Or(t.ms("backoff_max_ms"), 600_000)
	if t.final() != 0 {
		longest = max(1, min(longest, (t.final()-max(t.available, m.now))/(2*min(t.ms("max_retries"), 10))))
	}
	delete(t.given, "usual_backoff")
	t.given["backoff_ms"], t.given["backoff_max_ms"] = fmt.Sprint(min(longest, 1000)), fmt.Sprint(longest)
	t.given["backoff"], t.given["jitter"] = cmp.Or(t.given["backoff"], "exponential"), cmp.Or(t.given["jitter"], "20")
}

// remove removes the record of a task.
func (m *model) remove(id string) {
	t := m.tasks[id]
	m.least = max(m.least, cmp.Or(t.number, t.created)+1, t.epoch+1)
	delete(m.tasks, id)
	delete(m.goes, id)
	m.removed[id] = true
}

// hook makes the hook of a task that ended, if its producer asked for one.
func (m *model) hook(t *modelTask) {
	event, asked := "", ""
	switch {
	case t.status == queue.Completed:
		event, asked = "success", t.given["hook_success"]
	case t.status == queue.Cancelled:
		event, asked = "cancel", t.given["hook_cancel"]
	case t.timeoutType != "" && t.given["hook_timeout"] != "":
		event, asked = "timeout", t.given["hook_timeout"]
	default: // a timeout counts as a failure if there is no hook for timeouts
		event, asked = "failure", t.given["hook_failure"]
	}
	if asked == "" {
		return
	}
	kind, line, _ := strings.Cut(asked, " ")
	if line == "" {
		line = "default"
	}
	h := &modelTask{id: t.id + "!" + event, payload: t.epitaph(event)}
	h.given = m.fill(map[string]string{"kind": kind, "queue": line, "hook_of": t.id})
	h.deadline = m.now + 300_000
	if span := h.ms("timeout_ms"); span != 0 {
		h.deadline = m.now + span
	}
	delete(h.given, "timeout_ms")
	m.create(h)
}

// epitaph returns the payload of a hook: how the task ended.
func (t *modelTask) epitaph(event string) string {
	said := []string{fmt.Sprintf("%q:%q", "event", event), fmt.Sprintf("%q:%q", "task_id", t.id)}
	for _, w := range [][2]string{{"kind", t.given["kind"]}, {"queue", t.queue()}, {"status", string(t.status)}, {"reason", t.reason},
		{"timeout_type", t.timeoutType}, {"error", strings.ToValidUTF8(t.failure, "?")}} {
		if w[1] != "" {
			said = append(said, fmt.Sprintf("%q:%q", w[0], w[1]))
		}
	}
	if t.code != "" && (t.reason == "error" || t.reason == "failed") { // otherwise it is that of an earlier attempt
		said = append(said, `"code":`+t.code)
	}
	add := func(name string, at int64) {
		if at != 0 {
			said = append(said, fmt.Sprintf("%q:%d", name, at))
		}
	}
	add("created_at", t.created)
	add("started_at", t.started)
	add("deadline_at", t.deadline)
	add("completed_at", t.completed)
	return "{" + strings.Join(said, ",") + "}"
}

// define stores the defaults of a kind.
func (m *model) define(kind string, defaults map[string]string) {
	if len(defaults) == 0 {
		delete(m.kinds, kind)
		return
	}
	m.kinds[kind] = defaults
}

// zeroless returns a number as text, "" for 0.
func zeroless(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
