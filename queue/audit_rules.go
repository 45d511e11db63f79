package queue

import (
	"fmt"
	"slices"
	"strings"
)

// audit holds what must be true of a partition at rest. Each rule is written from
// the record's side and from the index's: an entry without its record is as wrong
// as a record without its entry.
type audit struct {
	*snapshot
	partition int
	findings  []Finding
}

func (a *audit) found(subject, rule string, args ...any) {
	a.findings = append(a.findings, Finding{a.partition, subject, fmt.Sprintf(rule, args...)})
}

// must reports a rule that does not hold.
func (a *audit) must(holds bool, subject, rule string, args ...any) {
	if !holds {
		a.found(subject, rule, args...)
	}
}

func (a *audit) run() {
	for _, name := range a.odd {
		a.found(name, "is not a key of ours, or is of the wrong type")
	}
	running := map[string]int64{}
	ids := make([]string, 0, len(a.tasks))
	for id := range a.tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		t := a.tasks[id]
		a.task(id, t)
		if t["status"] == string(Running) {
			running[t["queue"]]++
		}
	}
	a.indexes()
	a.queues(running)
	a.idempotency()
}

func live(t map[string]string) bool {
	s := Status(t["status"])
	return s == Pending || s == Running || s == Waiting
}

// in tells whether an id is in a sorted set with a score, given as text.
func (a *audit) in(key, id, score string) bool {
	have, ok := a.zsets[key][id]
	return ok && (score == "" || fmt.Sprintf("%.0f", have) == score)
}

// task checks a record against itself and against every index it should be in.
func (a *audit) task(id string, t map[string]string) {
	status := Status(t["status"])
	if !live(t) && !status.Ended() {
		a.found(id, "has no status that there is: %q", t["status"])
		return
	}
	for _, field := range []string{"version", "kind", "queue", "created_at"} {
		a.must(t[field] != "", id, "has no %s", field)
	}
	_, result := t["result"]
	_, failure := t["error"]
	if live(t) {
		a.must(!result && !failure && t["completed_at"] == "", id, "lives and has an end")
	} else {
		a.must(result != failure, id, "has ended, and must have exactly one of result and error")
		a.must(result == (status == Completed), id, "is %s and must have a result if and only if COMPLETED", status)
		a.must(t["completed_at"] != "", id, "has ended and has no completed_at")
	}
	if t["timed_out"] != "" {
		a.must(status == Failed && t["reason"] == "timeout" && t["timeout_type"] != "" && t["detected_at"] != "" &&
			t["error"] == "Task exceeded deadline", id, "timed out and must be FAILED, reason timeout, with its type and the fixed error")
		a.must(number(t["detected_at"]) >= number(t["completed_at"]), id, "was seen to time out before it did")
	}
	a.places(id, t, status)
	a.ancestry(id, t)
	if ended := status.Ended(); ended && !strings.Contains(id, ".") {
		a.must(a.in("retained", id, ""), id, "has ended and nothing removes its record")
	}
}

// places checks that a task stands where its status puts it, and nowhere else.
func (a *audit) places(id string, t map[string]string, status Status) {
	lives := live(t)
	a.iff("deadlines", id, t["deadline_at"], lives && t["deadline_at"] != "")
	a.iff("limits", id, t["limit_at"], lives && t["limit_at"] != "")
	delayed := status == Pending && t["available_at"] != ""
	a.iff("delayed", id, t["available_at"], delayed)
	a.iff("ready:"+t["queue"], id, "", status == Pending && !delayed)
	if status == Running {
		a.must(a.in("claims:"+t["worker"], id, ""), id, "is RUNNING and its worker %q does not hold it", t["worker"])
		a.must(a.in("workers", t["worker"], ""), id, "is RUNNING and nothing watches over its worker %q", t["worker"])
		a.must(number(t["epoch"]) > 0, id, "is RUNNING and was never claimed")
	}
	for key, members := range a.zsets {
		if name, ok := strings.CutPrefix(key, "ready:"); ok && name != t["queue"] {
			_, there := members[id]
			a.must(!there, id, "stands in the line of %s too", name)
		}
		if name, ok := strings.CutPrefix(key, "claims:"); ok && (name != t["worker"] || status != Running) {
			_, there := members[id]
			a.must(!there, id, "is held by %s and is %s", name, status)
		}
	}
}

func (a *audit) iff(key, id, score string, should bool) {
	if should {
		a.must(a.in(key, id, score), id, "must be in %s at %s", key, score)
	} else {
		_, there := a.zsets[key][id]
		a.must(!there, id, "must not be in %s", key)
	}
}

// ancestry checks a child against its owner: it is listed there, ends with it at
// the latest, and outlives it only while somebody is draining.
func (a *audit) ancestry(id string, t map[string]string) {
	at := strings.LastIndexByte(id, '.')
	if at < 0 {
		return
	}
	owner, known := a.tasks[id[:at]]
	if !known {
		a.must(!live(t), id, "lives and its owner is gone")
		return
	}
	if live(owner) {
		a.must(slices.Contains(a.lists["children:"+id[:at]], id), id, "is not among its owner's children")
		a.must(!a.in("retained", id, ""), id, "is to be removed while its owner lives")
	}
	bound := owner["until"]
	if bound == "" {
		bound = owner["deadline_at"]
	}
	if bound != "" {
		until := t["until"]
		if until == "" {
			until = t["deadline_at"]
		}
		a.must(until != "" && number(until) <= number(bound), id, "may outlast its owner")
	}
	if live(t) && !live(owner) {
		_, draining := a.zsets["draining"][id[:at]]
		a.must(draining, id, "lives, its owner has ended, and nothing ends it")
	}
}

// indexes checks that no entry is without its record.
func (a *audit) indexes() {
	for key, members := range a.zsets {
		kind, _, _ := strings.Cut(key, ":")
		if slices.Contains([]string{"workers", "forget", "broken"}, kind) {
			continue
		}
		for id := range members {
			t, known := a.tasks[id]
			if !known {
				a.found(id, "is in %s and has no record", key)
				continue
			}
			if kind == "retained" || kind == "draining" || kind == "dead" {
				a.must(!live(t), id, "is in %s and lives", key)
			}
		}
	}
	for id := range a.payloads {
		_, known := a.tasks[id]
		a.must(known, id, "has a payload and no record")
	}
	for key := range a.lists {
		if id, ok := strings.CutPrefix(key, "children:"); ok {
			_, known := a.tasks[id]
			a.must(known, id, "has children and no record")
		}
	}
}

// queues checks what is counted, and that a line has at most one token.
func (a *audit) queues(running map[string]int64) {
	for key, hash := range a.hashes {
		if name, ok := strings.CutPrefix(key, "queue:"); ok {
			a.must(number(hash["running"]) == running[name], name, "says that %s are running, and %d are", hash["running"], running[name])
			a.must(slices.Contains(a.sets["queues"], name), name, "is not in the list of queues")
		}
		if name, ok := strings.CutPrefix(key, "worker:"); ok {
			a.must(a.in("workers", name, ""), name, "is a worker that nothing watches over")
		}
	}
	for key, list := range a.lists {
		if strings.HasPrefix(key, "wake:") {
			a.must(len(list) <= 1, key, "has %d tokens", len(list))
		}
	}
	for key := range a.zsets {
		if name, ok := strings.CutPrefix(key, "claims:"); ok {
			a.must(a.in("workers", name, ""), name, "holds claims and nothing watches over it")
		}
	}
}

func (a *audit) idempotency() {
	for key := range a.zsets["forget"] {
		_, known := a.hashes["idem"][key]
		a.must(known, key, "is an idempotency key to be forgotten that is not there")
	}
	for key, value := range a.hashes["idem"] {
		id, _, _ := strings.Cut(value, " ")
		t := a.tasks[id]
		_, leaving := a.zsets["forget"][key]
		a.must(leaving == !(live(t) && t["idempotency_key"] == key), key, "is an idempotency key that must be forgotten if and only if its task has ended")
	}
}
