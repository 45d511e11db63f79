package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

// failedRun is the error of a task whose own time was up and whose on_deadline is fail.
const failedRun = "Workflow exceeded timeout"

// Finding is a place where a namespace contradicts itself.
type Finding struct {
	Partition int
	Subject   string // a task's id, or the key without its root
	Rule      string // the broken rule, in words
	cure      cure
}

func (f Finding) String() string {
	return fmt.Sprintf("partition %d: %s: %s", f.Partition, f.Subject, f.Rule)
}

// audit checks the invariants of a partition between calls. Each rule is checked from the record and
// from the index: an entry without its record is as wrong as a record without its entry.
type audit struct {
	*Snapshot
	partition int
	findings  []Finding
	cure      cure // of the rules that are being checked
}

func (a *audit) report(subject, rule string, args ...any) {
	a.findings = append(a.findings, Finding{a.partition, subject, fmt.Sprintf(rule, args...), a.cure})
}

// must adds a finding if a rule does not hold.
func (a *audit) must(holds bool, subject, rule string, args ...any) {
	if !holds {
		a.report(subject, rule, args...)
	}
}

// Check returns the places where the records and indexes of a partition disagree.
func (s *Snapshot) Check(partition int) []Finding {
	a := audit{Snapshot: s, partition: partition}
	a.run()
	return a.findings
}

func (a *audit) run() {
	a.odd()
	running, waiting := map[string]int64{}, map[string]waitTally{}
	ids := make([]string, 0, len(a.Tasks))
	for id := range a.Tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		t := a.Tasks[id]
		a.task(id, t)
		switch queue.Status(t["status"]) {
		case queue.Running:
			running[t["queue"]]++
		case queue.Waiting:
			tallyOf(waiting, t["queue"]).add(t["counted_as"])
		}
	}
	a.indexes()
	a.remembered()
	a.lostEnds()
	a.queues()
	a.counters(running, waiting)
	a.keys()
}

// checkTasks returns the findings for some tasks. The snapshot needs only the records that concern them.
func (s *Snapshot) checkTasks(partition int, ids []string) []Finding {
	a := audit{Snapshot: s, partition: partition}
	about := map[string]bool{}
	for _, id := range ids {
		about[id], about["task:"+id] = true, true
		if t, ok := a.Tasks[id]; ok {
			a.task(id, t)
		}
	}
	a.odd()
	a.indexes()
	a.remembered()
	return slices.DeleteFunc(a.findings, func(f Finding) bool { return !about[f.Subject] })
}

func (a *audit) odd() {
	for _, name := range a.Odd {
		if a.cure = oddKey; strings.HasPrefix(name, "task:") {
			a.cure = unreadable
		}
		a.report(name, "is not a key of Curfew, has the wrong type, or cannot be read")
	}
}

// Live reports whether a task has not ended, according to its record.
func Live(t map[string]string) bool {
	s := queue.Status(t["status"])
	return s == queue.Pending || s == queue.Running || s == queue.Waiting
}

// in reports whether an id is in a sorted set, and has the score if that is not "".
func (a *audit) in(key, id, score string) bool {
	have, ok := a.Zsets[key][id]
	return ok && (score == "" || fmt.Sprintf("%.0f", have) == score)
}

// task checks a record against itself and against every index it should be in.
func (a *audit) task(id string, t map[string]string) {
	a.cure = contradiction
	status := queue.Status(t["status"])
	if !Live(t) && !status.Ended() {
		a.report(id, "has the status %q, which is not valid", t["status"])
		return
	}
	for _, field := range []string{"kind", "queue", "created_at"} {
		a.must(t[field] != "", id, "has no %s", field)
	}
	_, result := t["result"]
	_, failure := t["error"]
	if Live(t) {
		a.must(!result && !failure && t["completed_at"] == "", id, "lives, and must not have result, error or completed_at")
	} else {
		a.must(result != failure, id, "has ended, and must have exactly one of result and error")
		a.must(result == (status == queue.Completed), id, "is %s, and must have a result if and only if it is COMPLETED", status)
		a.must(t["completed_at"] != "", id, "has ended and has no completed_at")
	}
	if t["timed_out"] != "" {
		text := "Task exceeded deadline"
		// The timeout_type of a flow's run does not show whether its own time was up or its ancestor's.
		direct := t["timeout_type"] == "execution" || t["timeout_type"] == "workflow" && strings.HasPrefix(t["kind"], "flow.") && t["error"] == failedRun
		if t["on_deadline"] == "fail" && direct {
			text = failedRun
		}
		a.must(status == queue.Failed && t["reason"] == "timeout" && t["timeout_type"] != "" && t["detected_at"] != "" &&
			t["error"] == text, id, "timed out, and must be FAILED with reason timeout, a timeout_type, detected_at and the fixed error")
	}
	a.cure = ofTask("")
	a.places(id, t, status)
	a.cure = contradiction
	a.role(id, t, status)
	a.grace(id, t, status)
	a.must(status != queue.Running || engine.Number(t["epoch"]) > 0, id, "is RUNNING and was never claimed")
	a.waits(id, t, status)
	a.ancestry(id, t)
	a.cure = contradiction
	a.hook(id, t)
	a.cure = ofTask("")
	a.key(id, t)
	a.retention(id, t, status)
}

// retention checks that something removes the record of an ended task, and that the task is among the dead of its queue
// until then. The record of a child is kept while its owner lives, and then until a sweep schedules its removal.
func (a *audit) retention(id string, t map[string]string, status queue.Status) {
	if !status.Ended() {
		return
	}
	ownerID := names.OwnerOf(id)
	_, draining := a.Zsets["draining"][ownerID]
	owner, ok := a.Tasks[ownerID]
	owned := ownerID != "" && (draining || ok && Live(owner))
	a.must(owned || a.in("retained", id, ""), id, "has ended and nothing removes its record")
	a.iff("dead:"+t["queue"], id, t["completed_at"], status != queue.Completed && a.in("retained", id, ""))
}

// places checks that a task is in the indexes that its status requires, and in no others.
func (a *audit) places(id string, t map[string]string, status queue.Status) {
	lives := Live(t)
	a.iff("deadlines", id, t["deadline_at"], lives && t["deadline_at"] != "")
	first := nearest(t)
	a.iff("limits", id, first, lives && first != "")
	delayed := status == queue.Pending && t["available_at"] != ""
	a.iff("delayed", id, t["available_at"], delayed)
	held := heldSet(t)
	if held != "" && t["held"] == "" && a.in("ready:"+t["queue"], id, "") {
		held = "" // an older version keeps suspects in line
	}
	a.iff("ready:"+t["queue"], id, "", status == queue.Pending && !delayed && t["role"] == "" && held == "")
	if held != "" {
		a.must(a.in("held:"+held, id, ""), id, "is held, and is not in held:%s", held)
		a.must(a.in("holds", held, ""), id, "is held, and %s is not in holds, so nothing puts it back in line", held)
	}
	if status == queue.Running {
		a.must(a.in("claims:"+t["worker"], id, ""), id, "is RUNNING and its worker %q does not hold it", t["worker"])
		a.must(a.in("workers", t["worker"], ""), id, "is RUNNING and its worker %q is not in workers, so nothing ends its lease", t["worker"])
	}
	for key, members := range a.Zsets {
		a.cure = ofTask(key)
		if name, ok := strings.CutPrefix(key, "ready:"); ok && name != t["queue"] {
			_, exists := members[id]
			a.must(!exists, id, "is in the line of %s too", name)
		}
		if name, ok := strings.CutPrefix(key, "held:"); ok && name != held {
			_, exists := members[id]
			a.must(!exists, id, "must not be held in %s", name)
		}
		if name, ok := strings.CutPrefix(key, "dead:"); ok && name != t["queue"] {
			_, exists := members[id]
			a.must(!exists, id, "is among the failed tasks of %s too", name)
		}
		if name, ok := strings.CutPrefix(key, "claims:"); ok && (name != t["worker"] || status != queue.Running) {
			_, exists := members[id]
			a.must(!exists, id, "is held by %s and is %s", name, status)
		}
	}
}

// heldSet returns the set in which a task is held, "" if it is not held (lua/store/state.lua).
func heldSet(t map[string]string) string {
	suspect := t["held"] == "" && t["lease_losses"] != ""
	if t["held"] == "" && !suspect || t["status"] != string(queue.Pending) || t["available_at"] != "" {
		return ""
	}
	set := t["queue"] + "," + t["kind"]
	if by := t["held_by"]; t["held"] == "diverged" || suspect && by != "" {
		set += "," + cmp.Or(by, "-")
	} else if suspect {
		set += ","
	}
	switch {
	case suspect && t["lease_losses"] == "1":
		set += "!few"
	case suspect:
		set += "!alone"
	}
	return set
}

// role checks a promise or timer: no worker ever runs it.
func (a *audit) role(id string, t map[string]string, status queue.Status) {
	role := t["role"]
	if role == "" {
		return
	}
	a.must(role == "promise" || role == "timer", id, "has the role %q, which is not valid", role)
	a.must(status != queue.Running && status != queue.Waiting && t["epoch"] == "", id, "is a %s, and a worker has claimed it", role)
	a.must(!Live(t) || (role == "timer") == (t["available_at"] != ""), id,
		"is a %s: a timer must have available_at, and a promise must not", role)
}

// grace checks that only a running task has a grace, and that the grace ends no later than its deadline.
func (a *audit) grace(id string, t map[string]string, status queue.Status) {
	cancelling := t["cancel_at"] != ""
	a.must(cancelling == (t["grace_at"] != ""), id, "must have both cancel_at and grace_at, or neither")
	if !cancelling || !Live(t) {
		return
	}
	a.must(status == queue.Running, id, "is %s and has a grace, which only a RUNNING task can have", status)
	final := cmp.Or(t["until"], t["deadline_at"])
	a.must(final == "" || engine.Number(t["grace_at"]) <= engine.Number(final), id, "has a grace that ends after its deadline")
}

// nearest returns the next instant of a live task on the clock of limits, "" if it has none
// (lua/store/state.lua).
func nearest(t map[string]string) string {
	first := ""
	for _, name := range []string{"limit_at", "warn_at", "grace_at"} {
		if t[name] != "" && (first == "" || engine.Number(t[name]) < engine.Number(first)) {
			first = t[name]
		}
	}
	return first
}

// hook checks a task with the id of a hook: it was made for the end of a task, it has a deadline, and it has no
// hooks itself.
func (a *audit) hook(id string, t map[string]string) {
	subject := ""
	if at := strings.LastIndexByte(id, '!'); at >= 0 && strings.IndexByte(id[at:], '.') < 0 {
		subject = id[:at]
	}
	a.must(t["hook_of"] == subject, id, "is the hook of %q according to its id, and of %q according to its record", subject, t["hook_of"])
	if subject == "" {
		return
	}
	a.must(t["deadline_at"] != "" && t["role"] == "", id, "is a hook, and must have a deadline and no role")
	if task, ok := a.Tasks[subject]; ok {
		a.must(!Live(task) || !belongs(t, task), id, "is the hook of a task that lives") // the id can have another task now
	}
	for name := range t {
		a.must(name == "hook_of" || !strings.HasPrefix(name, "hook_"), id, "is a hook and has %s", name)
	}
}

func (a *audit) iff(key, id, score string, should bool) {
	if should {
		a.must(a.in(key, id, score), id, "must be in %s at %s", key, score)
	} else {
		_, ok := a.Zsets[key][id]
		a.must(!ok, id, "must not be in %s", key)
	}
}

// belongs reports whether a child or hook is of this task, and not of an earlier task with the same id (lua/task/identity.lua).
func belongs(child, owner map[string]string) bool {
	if n := child["of_number"]; n != "" {
		return n == cmp.Or(owner["number"], owner["created_at"])
	}
	return engine.Number(child["created_at"]) >= engine.Number(owner["created_at"])
}

// ancestry checks a child against its owner: the owner lists the child, the child's deadline is not
// later than the owner's, and the child outlives the owner only while the sweep ends the owner's children.
func (a *audit) ancestry(id string, t map[string]string) {
	ownerID := names.OwnerOf(id)
	if ownerID == "" {
		return
	}
	owner, ok := a.Tasks[ownerID]
	if !ok {
		a.cure = ownerLost
		a.must(!Live(t), id, "lives and its owner has no record")
		return
	}
	if !Live(t) && !belongs(t, owner) {
		return // to an earlier task of this name (lua/task/identity.lua)
	}
	if Live(owner) {
		a.cure = ofTask("children")
		a.must(slices.Contains(a.Lists["children:"+ownerID], id), id, "is not among its owner's children")
		a.cure = ofTask("")
		a.must(!a.in("retained", id, ""), id, "is in retained while its owner lives")
	}
	a.cure = contradiction
	if bound := cmp.Or(owner["until"], owner["deadline_at"]); bound != "" {
		final := cmp.Or(t["until"], t["deadline_at"])
		a.must(final != "" && engine.Number(final) <= engine.Number(bound), id, "has a later deadline than its owner, or none")
	}
	if Live(t) && !Live(owner) {
		_, draining := a.Zsets["draining"][ownerID]
		a.cure = ofTask("draining")
		a.must(draining, id, "lives though its owner has ended, and the owner is not in draining, so nothing ends it")
	}
}

// indexes checks that each entry has its record.
func (a *audit) indexes() {
	for key, members := range a.Zsets {
		kind, _, _ := strings.Cut(key, ":")
		if slices.Contains([]string{"workers", "forget", "throttled", "holds", "broken", "pending", "patience"}, kind) {
			continue
		}
		a.cure = ofTask(key)
		for id := range members {
			t, exists := a.Tasks[id]
			if !exists {
				a.report(id, "is in %s and has no record", key)
				continue
			}
			if kind == "retained" || kind == "draining" || kind == "dead" {
				a.must(!Live(t), id, "is in %s and lives", key)
			}
		}
	}
	a.cure = ofTask("")
	for kind, ids := range a.Texts {
		for id := range ids {
			_, exists := a.Tasks[id]
			a.must(exists, id, "has the key %s and no record", kind+id)
		}
	}
	for key := range a.Lists {
		if id, ok := strings.CutPrefix(key, "children:"); ok {
			_, exists := a.Tasks[id]
			a.must(exists, id, "has children and no record")
		}
	}
}
