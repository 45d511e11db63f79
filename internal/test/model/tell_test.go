package model

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/queue"
)

// formatSnapshot and formatModel describe the same state in the same words, one line for each thing.
// Records are listed whole, so that no field can change unnoticed.
func formatSnapshot(s *audit.Snapshot) []string {
	var lines []string
	for id, f := range s.Tasks {
		lines = append(lines, "task "+id+": "+formatFields(f))
	}
	for id := range s.Payloads {
		lines = append(lines, "payload "+id)
	}
	for key, members := range s.Zsets {
		switch kind, _, _ := strings.Cut(key, ":"); kind {
		case "ready", "claims", "held":
			lines = append(lines, fmt.Sprint(key, " ", due(whole(members), 1<<60)))
		case "draining", "retained", "workers", "forget", "throttled", "dead", "waits", "holds", "pending", "patience":
			lines = append(lines, fmt.Sprint(key, " ", whole(members)))
		}
	}
	lines = append(lines, fmt.Sprint("queues ", slices.Sorted(slices.Values(s.Sets["queues"]))))
	lines = append(lines, fmt.Sprint("kinds ", slices.Sorted(slices.Values(s.Sets["kinds"]))))
	for key, ids := range s.Lists {
		lines = append(lines, fmt.Sprint(key, " ", ids))
	}
	for key, f := range s.Hashes {
		f = maps.Clone(f)
		switch kind, _, _ := strings.Cut(key, ":"); kind {
		case "queue":
			maps.DeleteFunc(f, func(name, value string) bool { return value == "0" && name != "drained" || name == "full_at" })
		case "idem":
			for key, value := range f {
				f[key], _, _ = strings.Cut(value, " ")
			}
		case "":
			maps.DeleteFunc(f, func(name, _ string) bool {
				return name != "controlled" && name != "number" && !strings.HasPrefix(name, "kind:")
			})
			for name, value := range f {
				if strings.HasPrefix(name, "kind:") {
					f[name] = strings.Join(slices.Sorted(strings.SplitSeq(value, "\n")), "\n")
				}
			}
		}
		if len(f) > 0 {
			lines = append(lines, key+" "+formatFields(f))
		}
	}
	slices.Sort(lines)
	return lines
}

func whole(members map[string]float64) map[string]int64 {
	n := map[string]int64{}
	for id, score := range members {
		n[id] = int64(score)
	}
	return n
}

// formatFields formats fields by name. Empty fields are left out, except result and error.
func formatFields(f map[string]string) string {
	var words []string
	for name, value := range f {
		if value != "" || name == "result" || name == "error" {
			words = append(words, name+"="+value)
		}
	}
	slices.Sort(words)
	return strings.Join(words, "|")
}

// record returns the fields that must be stored of a task.
func (t *modelTask) record() map[string]string {
	f := maps.Clone(t.given)
	f["status"] = string(t.status)
	for _, field := range [...]struct {
		name string
		n    int64
	}{{"created_at", t.created}, {"number", t.number}, {"of_number", t.ofNumber}, {"deadline_at", t.deadline}, {"until", t.until}, {"warn_at", t.warn},
		{"limit_at", t.limit}, {"available_at", t.available}, {"started_at", t.started}, {"completed_at", t.completed},
		{"detected_at", t.detected}, {"cancel_at", t.cancelled}, {"grace_at", t.grace}, {"progress_at", t.progressAt}, {"epoch", t.epoch}, {"retries", t.retries},
		{"lease_losses", t.losses}, {"children", t.born}, {"attempt_at", t.attemptAt}, {"line_at", t.lineAt}, {"passed_on", t.passedOn}, {"ready_at", t.readyAt}, {"held_at", t.heldAt}} {
		if field.n != 0 {
			f[field.name] = strconv.FormatInt(field.n, 10)
		}
	}
	for _, field := range [...]struct{ name, text string }{{"worker", t.worker}, {"lost_by", t.lostBy}, {"call", t.call}, {"requeued_by", t.requeuedBy}, {"release_reason", t.releaseReason},
		{"until_of", t.untilOf}, {"last_error", t.lastError}, {"reason", t.reason}, {"timeout_type", t.timeoutType}, {"code", t.code},
		{"retry_state", t.retryState}, {"retry_error", t.retryError}, {"cancel_reason", t.cancelReason}, {"cancelled_by", t.cancelledBy},
		{"progress", t.progress}, {"suspended_by", t.suspendedBy}, {"late_by", t.lateBy}, {"held", t.held}} {
		if field.text != "" {
			f[field.name] = field.text
		}
	}
	if t.wait != nil {
		f["waiting"] = t.wait.entry
	}
	if t.status == queue.Waiting {
		f["counted_as"] = t.countedAs
	}
	if t.woken {
		f["woken"] = "1"
	}
	if t.journal {
		f["journal"] = "1"
	}
	if t.collects {
		f["collects"] = fmt.Sprint(t.handed)
	}
	switch {
	case t.status == queue.Completed:
		f["result"] = t.result
	case !t.lives():
		f["error"] = t.failure
	}
	if t.timeoutType != "" {
		f["timed_out"] = "1"
	}
	return f
}

func (q *modelQueue) record(running, waiting int64) map[string]string {
	f := maps.Clone(q.controls)
	for name, n := range q.counts {
		f[name] = zeroless(n)
	}
	f["running"], f["waiting"] = zeroless(running), zeroless(waiting)
	if q.drainedBy != "" {
		f["drained_by"], f["drained"] = q.drainedBy, fmt.Sprint(q.drained, " ", q.found)
	}
	return f
}

// openWaits returns how many agents of a queue wait, by the counter that counts them.
func (m *model) openWaits(line string) map[string]string {
	n := map[string]int64{}
	for _, t := range m.tasks {
		if t.queue() == line && t.status == queue.Waiting {
			n[t.countedAs]++
		}
	}
	f := map[string]string{}
	for counter, count := range n {
		f[counter] = fmt.Sprint(count)
	}
	return f
}

func formatModel(m *model) []string {
	var lines []string
	for id, t := range m.tasks {
		lines = append(lines, "task "+id+": "+formatFields(t.record()))
		if t.payload != "" {
			lines = append(lines, "payload "+id)
		}
		if len(t.children) > 0 {
			lines = append(lines, fmt.Sprint("children:", id, " ", t.children))
		}
	}
	clocks := map[string]map[string]int64{"draining": m.drain, "retained": m.goes, "workers": m.workers, "forget": m.forget,
		"throttled": m.throttled, "waits": m.waits}
	for id, t := range m.tasks {
		lines = append(lines, t.agentLines()...)
		clocks["patience:"+id] = t.patience
		if t.wait != nil {
			clocks["pending:"+id] = t.wait.pending
		}
	}
	for line, q := range m.queues {
		counters := q.record(m.number(line, queue.Running), m.number(line, queue.Waiting))
		maps.Copy(counters, m.openWaits(line))
		if f := formatFields(counters); f != "" {
			lines = append(lines, "queue:"+line+" "+f)
		}
		if ready := m.line(line); len(ready) > 0 {
			lines = append(lines, fmt.Sprint("ready:", line, " ", idsOf(ready)))
		}
		if m.wake[line] {
			lines = append(lines, "wake:"+line+" [1]")
		}
		dead := map[string]int64{}
		for id := range m.goes {
			if t := m.tasks[id]; t.queue() == line && t.status != queue.Completed {
				dead[id] = t.completed
			}
		}
		clocks["dead:"+line] = dead
	}
	holds := map[string]int64{}
	for set := range m.heldSets() {
		lines, holds[set] = append(lines, fmt.Sprint("held:", set, " ", idsOf(m.heldIn(set)))), 0
	}
	clocks["holds"] = holds
	if text := m.formatIsolation(); text != "" {
		lines = append(lines, text)
	}
	for worker := range m.workers {
		if f := m.workerLine(worker); f != "" {
			lines = append(lines, "worker:"+worker+" "+f)
		}
		if held := m.held(worker); len(held) > 0 {
			lines = append(lines, fmt.Sprint("claims:", worker, " ", idsOf(held)))
		}
	}
	for name, clock := range clocks {
		if len(clock) > 0 {
			lines = append(lines, fmt.Sprint(name, " ", clock))
		}
	}
	lines = append(lines, fmt.Sprint("queues ", slices.Sorted(maps.Keys(m.queues))))
	lines = append(lines, m.formatRoot()...)
	lines = append(lines, m.formatFigures()...)
	slices.Sort(lines)
	return lines
}

func (m *model) formatRoot() []string {
	keys, root := map[string]string{}, map[string]string{}
	for key, k := range m.keys {
		keys[key] = k.id
	}
	for kind, defaults := range m.kinds {
		root["kind:"+kind] = strings.ReplaceAll(formatFields(defaults), "|", "\n")
	}
	if m.controlled() {
		root["controlled"] = "1"
	}
	root["number"] = zeroless(m.least)
	var lines []string
	if len(keys) > 0 {
		lines = append(lines, "idem "+formatFields(keys))
	}
	if text := formatFields(root); text != "" {
		lines = append(lines, " "+text)
	}
	return lines
}

func idsOf(tasks []*modelTask) []string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.id)
	}
	return ids
}

// differences returns the lines that only one side has.
func differences(redis, model []string) string {
	var b strings.Builder
	for _, line := range redis {
		if !slices.Contains(model, line) {
			b.WriteString("Redis: " + line + "\n")
		}
	}
	for _, line := range model {
		if !slices.Contains(redis, line) {
			b.WriteString("model: " + line + "\n")
		}
	}
	return b.String()
}
