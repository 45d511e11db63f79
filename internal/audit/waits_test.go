package audit

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// waiters makes a partition with an agent in every state that a wait has. 0-a waits for three members, of which
// one has completed. 0-f has sent the first part of its wait. 0-w was woken. 0-l has more losers than one call ends.
func waiters(t *testing.T) *Snapshot {
	t.Helper()
	ctx := context.Background()
	q, err := queue.Open(ctx, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range []string{"0-a", "0-f", "0-w", "0-l"} {
		do(q.Engine().Library().Run(ctx, q.Client(), "enqueue", q.Root(0), wire.Tasks([]any{"id", id, "kind", "k", "attempt_timeout_ms", "3600000"})...))
		do(claim.Of(q).Fetch(ctx, 0, "w1", claim.Ask{N: 1, Seq: int64(i + 1), Lease: time.Hour, Quotas: []claim.Quota{{Queue: "default", N: 1}}}))
	}
	suspend := func(agent string, w claim.Wait, children []queue.Task) {
		t.Helper()
		w.Entry, w.Digest = 1, "d"
		for _, c := range children {
			w.Members = append(w.Members, claim.Member{ID: c.ID, Mask: w.Mask, Patience: w.Limit / 2})
		}
		do(claim.Of(q).Suspend(ctx, claim.Suspension{Agent: agent, Epoch: 1, Worker: "w1", Wait: w, Children: children}))
	}
	promises := func(agent string, n int) (children []queue.Task) {
		for i := range n {
			children = append(children, queue.Task{ID: fmt.Sprint(agent, ".", i), Kind: "k", Promise: true})
		}
		return children
	}
	suspend("0-a", claim.Wait{Mode: queue.WaitAll, Limit: time.Hour, Mask: "obbbn"}, promises("0-a", 3))
	do(q.Resolve(ctx, "0-a.0", nil))
	suspend("0-w", claim.Wait{Mode: queue.WaitAny}, promises("0-w", 1))
	do(q.Resolve(ctx, "0-w.0", nil))
	suspend("0-l", claim.Wait{Mode: queue.WaitAny, CancelLosers: true}, promises("0-l", 104))
	do(q.Resolve(ctx, "0-l.7", nil))
	do(q.EnqueueAll(ctx, promises("0-f", 2)))
	do(q.Engine().Call(ctx, 0, "suspend", "0-f", 1, "w1", queue.NewCall(), // the first of two parts
		6, "entry", 1, "mode", "all", "digest", "d", "label", "", "part", 1, "of", 2, 2, "0-f.0", "", "", "0-f.1", "", "", 0, 0, 0))
	s, err := Read(ctx, q, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// copied returns a copy of a snapshot, which a test can spoil.
func (s *Snapshot) copied() *Snapshot {
	c := *s
	c.Tasks, c.Hashes = map[string]map[string]string{}, map[string]map[string]string{}
	c.Zsets, c.Lists = map[string]map[string]float64{}, map[string][]string{}
	for id, f := range s.Tasks {
		c.Tasks[id] = maps.Clone(f)
	}
	for key, f := range s.Hashes {
		c.Hashes[key] = maps.Clone(f)
	}
	for key, members := range s.Zsets {
		c.Zsets[key] = maps.Clone(members)
	}
	for key, list := range s.Lists {
		c.Lists[key] = slices.Clone(list)
	}
	return &c
}

// Each case breaks one rule on waits in a sound partition. The audit must find that.
func TestTheAuditFindsEachBrokenWait(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	s := waiters(t)
	tests := []struct {
		name  string
		spoil func(s *Snapshot)
		told  string // "" if there must be no finding
	}{
		{"nothing", func(*Snapshot) {}, ""},
		{"WAITING without a wait", func(s *Snapshot) { delete(s.Hashes, "wait:0-a") }, "0-a: is WAITING, and its wait is"},
		{"a wait without the field", func(s *Snapshot) { delete(s.Tasks["0-f"], "waiting") }, "0-f: must have the field waiting"},
		{"another entry", func(s *Snapshot) { s.Tasks["0-a"]["waiting"] = "2" }, "0-a: is at the wait"},
		{"RUNNING at an open wait", func(s *Snapshot) { s.Hashes["wait:0-f"]["state"] = "open" }, "0-f: is RUNNING, and its wait is"},
		{"a state that is not valid", func(s *Snapshot) { s.Hashes["wait:0-f"]["state"] = "done" }, "0-f: has a wait with the state"},
		{"a wait that another claim began", func(s *Snapshot) { s.Tasks["0-f"]["epoch"] = "2" }, "0-f: has a forming wait that another claim began"},
		{"WAITING without the call that did it", func(s *Snapshot) { delete(s.Tasks["0-a"], "suspended_by") }, "0-a: is WAITING, and must have suspended_by"},
		{"WAITING with a worker", func(s *Snapshot) { s.Tasks["0-a"]["worker"] = "w1" }, "0-a: is WAITING, and must have suspended_by"},
		{"an ended task at a wait", func(s *Snapshot) { s.Tasks["0-f"]["status"] = "FAILED" }, "0-f: is at a wait and is FAILED"},

		{"WAITING in line", func(s *Snapshot) { s.Zsets["ready:default"]["0-a"] = 1 }, "0-a: must not be in ready:default"},
		{"WAITING and held", func(s *Snapshot) { s.Zsets["claims:w1"]["0-a"] = 1 }, "0-a: is held by w1 and is WAITING"},
		{"WAITING and delayed", func(s *Snapshot) { s.Zsets["delayed"] = map[string]float64{"0-a": 1} }, "0-a: must not be in delayed"},

		{"a member that is neither pending nor settled", func(s *Snapshot) { delete(s.Zsets["pending:0-a"], "1") }, "neither pending nor settled"},
		{"a member in both", func(s *Snapshot) { s.Zsets["pending:0-a"]["0"] = 1 }, "is both pending and settled"},
		{"pending without being a member", func(s *Snapshot) { s.Zsets["pending:0-a"]["9"] = 1 }, "0-a: waits for 9, which is not a member"},
		{"settled without being a member", func(s *Snapshot) { s.Lists["settled:0-l"] = append(s.Lists["settled:0-l"], "x") }, "0-l: has settled x, which is not a member"},
		{"a member twice", func(s *Snapshot) { s.Hashes["wait:0-a"]["members"] += " 1" }, "0-a: waits for 1 twice"},
		{"members that are miscounted", func(s *Snapshot) { s.Hashes["wait:0-a"]["size"] = "4" }, "0-a: has a wait of 4 members"},
		{"a member without a record", func(s *Snapshot) { delete(s.Tasks, "0-a.1") }, "0-a: waits for 1, and there is no such task"},
		{"a member that ended and was not counted", func(s *Snapshot) { maps.Copy(s.Tasks["0-a.1"], ended(1)) }, "0-a: waits for 1, which ended before the limit"},
		{"a settled member that lives", func(s *Snapshot) { s.Tasks["0-a.0"]["status"] = "PENDING" }, "0-a: has settled 0, which lives"},
		{"waiting for nothing", func(s *Snapshot) { delete(s.Zsets, "pending:0-a") }, "0-a: waits for nothing"},

		{"ends that are miscounted", func(s *Snapshot) { s.Hashes["wait:0-a"]["settled"] = "2" }, "0-a: has counted 2 ends"},
		{"an ok end that is not counted", func(s *Snapshot) { s.Hashes["wait:0-a"]["ok"] = "0" }, "0-a: has counted 0 ok"},
		{"a bad end by the mask of the member", func(s *Snapshot) { s.Hashes["wait:0-a"]["mask 0"] = "bbbbb" }, "and there are 0 and 1"},
		{"too many needed", func(s *Snapshot) { s.Hashes["wait:0-a"]["all"] = "4" }, "0-a: waits for more ends than it has members"},
		{"open and over", func(s *Snapshot) { s.Hashes["wait:0-a"]["all"] = "1" }, "0-a: has an open wait that is decided"},
		{"open and over by need", func(s *Snapshot) { s.Hashes["wait:0-a"]["need_ok"] = "1" }, "0-a: has an open wait that is decided"},
		{"open with a reason", func(s *Snapshot) { s.Hashes["wait:0-a"]["reason"] = "satisfied" }, "0-a: has an open wait with a reason"},
		{"fired and not over", func(s *Snapshot) { s.Hashes["wait:0-l"]["all"] = "2" }, "0-l: has a wait that fired with the reason"},
		{"fired without a reason", func(s *Snapshot) { delete(s.Hashes["wait:0-l"], "reason") }, "0-l: has a wait that fired with the reason"},
		{"a winner that lives", func(s *Snapshot) { s.Hashes["wait:0-l"]["winner"] = "8" }, "0-l: has a winner 8"},
		{"timed out and over", func(s *Snapshot) { s.Hashes["wait:0-l"]["reason"] = "timed_out" }, "0-l: has a wait that timed out, and was decided before"},
		{"a limit that began and has no instant", func(s *Snapshot) {
			delete(s.Hashes["wait:0-a"], "wait_deadline_at")
			s.Hashes["wait:0-a"]["limit_ms"] = "5"
		}, "0-a: has a limit that began with the first end"},

		{"a limit that no sweep finds", func(s *Snapshot) { delete(s.Zsets["waits"], "0-a") }, "0-a: must be in waits"},
		{"a limit at another instant in waits", func(s *Snapshot) { s.Zsets["waits"]["0-a"]++ }, "0-a: must be in waits"},
		{"a limit and no patience", func(s *Snapshot) { delete(s.Zsets, "patience:0-a") }, "0-a: must be in waits"},
		{"losers that no sweep ends", func(s *Snapshot) {
			delete(s.Zsets["waits"], "0-l")
			delete(s.Tasks["0-l"], "limit_at")
		}, "0-l: has a wait that fired, and nothing wakes it"},
		{"in waits though RUNNING", func(s *Snapshot) { s.Zsets["waits"]["0-f"] = 1 }, "0-f: must not be in waits"},
		{"in waits without a record", func(s *Snapshot) { s.Zsets["waits"]["0-x"] = 1 }, "0-x: is in waits and has no record"},

		{"an attempt limit that no sweep finds", func(s *Snapshot) { delete(s.Tasks["0-a"], "attempt_at") }, "0-a: is WAITING with attempt_at"},
		{"woken and RUNNING", func(s *Snapshot) { s.Tasks["0-f"]["woken"] = "1" }, "0-f: was woken, and is not in line"},
		{"attempt_at of a task that runs", func(s *Snapshot) { s.Tasks["0-f"]["attempt_at"] = "1" }, "0-f: has attempt_at"},
		{"woken without its limit", func(s *Snapshot) { delete(s.Tasks["0-w"], "limit_at") }, "0-w: was woken, and nothing ends its attempt"},

		{"pending without a record", func(s *Snapshot) { s.Zsets["pending:0-x"] = map[string]float64{"1": 1} }, "0-x: has the key pending:0-x, and has ended or has no record"},
		{"pending without a wait", func(s *Snapshot) { s.Zsets["pending:0-w"] = map[string]float64{"1": 1} }, "0-w: has members of a wait, and no wait"},
		{"settled without a record", func(s *Snapshot) { s.Lists["settled:0-x"] = []string{"1"} }, "0-x: has the key settled:0-x, and has ended or has no record"},
		{"patience of an ended task", func(s *Snapshot) { s.Zsets["patience:0-a.0"] = map[string]float64{"1": 1} }, "0-a.0: has the key patience:0-a.0, and has ended or has no record"},
		{"a wait without a record", func(s *Snapshot) { s.Hashes["wait:0-x"] = map[string]string{} }, "0-x: has the key wait:0-x, and has ended or has no record"},
		{"a journal of an ended task", func(s *Snapshot) { s.Hashes["journal:0-a.0"] = map[string]string{} }, "0-a.0: has the key journal:0-a.0, and has ended or has no record"},
		{"a journal that the record does not have", func(s *Snapshot) { delete(s.Tasks["0-w"], "journal") }, "0-w: has a journal, and its record"},
		{"a journal with a wrong size", func(s *Snapshot) { s.Hashes["journal:0-w"]["bytes"] = "1" }, "0-w: has a journal of"},
		{"a queue that miscounts waiting agents", func(s *Snapshot) { s.Hashes["queue:default"]["waiting"] = "5" }, "default: has counted 5 waiting tasks, and there are 2"},
		{"a queue that miscounts the agents of a mode", func(s *Snapshot) { s.Hashes["queue:default"]["unbounded_any"] = "5" },
			"default: has counted 5 waiting tasks in mode any (unbounded), and there are "},

		// These only look wrong.
		{"an end after the limit", func(s *Snapshot) {
			maps.Copy(s.Tasks["0-a.1"], ended(engine.Number(s.Hashes["wait:0-a"]["wait_deadline_at"])+1))
		}, ""},
		{"a wait whose agent is out of time itself", func(s *Snapshot) { delete(s.Zsets["waits"], "0-l") }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spoilt := s.copied()
			test.spoil(spoilt)
			findings := spoilt.Check(0)
			told := fmt.Sprint(findings)
			if test.told == "" && len(findings) > 0 || !strings.Contains(told, test.told) {
				t.Errorf("Check returns %s, want %q", told, test.told)
			}
		})
	}
}

// ended returns the fields of a task that completed at an instant.
func ended(at int64) map[string]string {
	return map[string]string{"status": "COMPLETED", "result": "", "completed_at": fmt.Sprint(at)}
}
