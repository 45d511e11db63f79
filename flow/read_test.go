package flow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// tell writes the nodes of a run in one line: key, phase, token, attempts if there are several, reason, what it waits for, and
// in brackets its part.
func tell(r *flow.Run) string {
	var all []string
	for _, n := range r.Nodes {
		text := n.Key + ":" + string(n.Phase) + "/" + string(n.Token)
		if n.Attempts > 1 {
			text += fmt.Sprintf("×%d", n.Attempts)
		}
		if n.Reason != "" {
			text += "!" + n.Reason
		}
		if len(n.WaitsFor) > 0 {
			text += "<" + strings.Join(n.WaitsFor, ",")
		}
		if n.Part != nil {
			text += "[" + tell(n.Part) + "]"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (s *stage) read(id string) *flow.Run {
	s.t.Helper()
	r, err := flow.Read(s.ctx, s.q, id, true)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// see compares a run with what is expected.
func (s *stage) see(id string, phase flow.Phase, want string) *flow.Run {
	s.t.Helper()
	r := s.read(id)
	if got := tell(r); got != want || r.Phase != phase {
		s.t.Errorf("the run is %s:\n%s\nwant %s:\n%s", r.Phase, got, phase, want)
	}
	return r
}

// take claims a task as a worker. Each node of these tests has a queue with its name, so its task is the next one there.
func (s *stage) take(id, line string) queue.Claim {
	s.t.Helper()
	s.hand.Q, s.hand.Worker = s.q, "hand"
	return s.hand.Take(s.t, id, line)
}

// settle reports how an attempt ended, and lets the runs continue.
func (s *stage) settle(c queue.Claim, o queue.Outcome) {
	s.t.Helper()
	o.ID, o.Epoch = c.ID, c.Epoch
	s.hand.Settle(s.t, o)
	s.drain()
}

// run takes the next task of a line and completes it.
func (s *stage) complete(id, line, result string) {
	s.t.Helper()
	s.settle(s.take(id, line), queue.Outcome{Verb: queue.Complete, Result: []byte(result)})
}

// sweepUntil sweeps and runs agents until something holds.
func (s *stage) sweepUntil(what string, holds func() bool) {
	s.t.Helper()
	await.Until(s.t, what, func() bool {
		for p := range s.q.Partitions() {
			if _, err := reaper.Sweep(s.ctx, s.q, p, "test", 100, time.Second); err != nil {
				s.t.Fatal(err)
			}
		}
		s.drain()
		return holds()
	})
}

// job returns a node of a DAG whose task stands in a queue with its name.
func job(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"executor":{"type":"job","queue":%q}%s}`, name, name, more)
}

func dagOf(id, more, tasks, templates string) string {
	return fmt.Sprintf(`{"id":%q%s,"spec":{"entrypoint":"main","templates":[{"name":"main","dag":{"tasks":[%s]}}%s]}}`, id, more, tasks, templates)
}

// A DAG with a part within it is read at each step of its life.
func TestReadADAG(t *testing.T) {
	s := newStage(t)
	s.put(dagOf("d", "", job("first", "")+`,{"name":"part","template":"inner","dependencies":["first"]},`+
		job("side", `,"dependencies":["first"],"retry":{"limit":2}`)+`,{"name":"last","executor":{"type":"echo"},"dependencies":["part","side"]}`,
		`,{"name":"inner","dag":{"tasks":[`+job("x", "")+`,`+job("y", `,"dependencies":["x"]`)+`]}}`))
	id := s.enqueue("flow.d", "")
	notBegun := "first:Created/pending part:Created/pending<first side:Created/pending<first last:Created/pending<part,side"
	if r := s.see(id, flow.Ready, notBegun); r.Version != "" || r.Flow != "d" {
		t.Errorf("before the first claim its version is %q", r.Version)
	}
	s.drain()
	if r := s.see(id, flow.Suspended, strings.Replace(notBegun, "first:Created/pending", "first:Ready/dispatched", 1)); r.Version != "1" {
		t.Errorf("its version is %q", r.Version)
	}
	first := s.take(id+".first", "first")
	s.see(id, flow.Suspended, strings.Replace(notBegun, "first:Created/pending", "first:Running/executing", 1))
	s.settle(first, queue.Outcome{Verb: queue.Complete, Result: []byte(`{}`)})
	s.see(id, flow.Suspended, "first:Succeeded/completed part:Suspended/executing[x:Ready/dispatched y:Created/pending<x] side:Ready/dispatched last:Created/pending<part,side")

	s.settle(s.take(id+".side", "side"), queue.Outcome{Verb: queue.Fail, Error: "no", Delay: 10 * time.Minute})
	s.complete(id+".part.x", "x", `{}`)
	r := s.see(id, flow.Suspended, "first:Succeeded/completed part:Suspended/executing[x:Succeeded/completed y:Ready/dispatched] side:Created/pending last:Created/pending<part,side")
	if side := r.Nodes[2]; side.Msg != "no" || side.Attempts != 1 {
		t.Errorf("side has %q after %d attempts", side.Msg, side.Attempts)
	}
	s.complete(id+".part.y", "y", `{}`)
	s.see(id, flow.Suspended, "first:Succeeded/completed part:Succeeded/completed[x:Succeeded/completed y:Succeeded/completed] side:Created/pending last:Created/pending<side")
	if _, err := s.q.Cancel(s.ctx, id+".side", "enough"); err != nil {
		t.Fatal(err)
	}
	s.drain()
	s.see(id, flow.Failed, "first:Succeeded/completed part:Succeeded/completed[x:Succeeded/completed y:Succeeded/completed] side:Cancelled/cancelled last:Cancelled/cancelled")
}

// A run that has ended with success is read after its journal is gone.
func TestReadAFinishedRun(t *testing.T) {
	s := newStage(t)
	s.put(dagOf("d", "", job("first", "")+`,`+job("again", `,"dependencies":["first"],"retry":{"limit":2}`), ""))
	id := s.enqueue("flow.d", "")
	s.drain()
	s.complete(id+".first", "first", `{}`)
	s.settle(s.take(id+".again", "again"), queue.Outcome{Verb: queue.Fail, Error: "no", Delay: time.Millisecond})
	s.sweepUntil("the task is in line again", func() bool { return s.get(id + ".again").AvailableAt.IsZero() })
	s.complete(id+".again", "again", `{}`)
	r := s.see(id, flow.Succeeded, "first:Succeeded/completed again:Succeeded/completed×2")
	if r.Version != "1" || r.Removed != 0 {
		t.Errorf("its version is %q, and %d of its tasks are gone", r.Version, r.Removed)
	}
	if n := r.Nodes[1]; n.Task != id+".again" || n.Kind != "job" || n.Began.IsZero() || n.Ended.Before(n.Began) || !n.Deadline.IsZero() {
		t.Errorf("again is %+v", n)
	}
}

// loopOf returns a definition whose only template is a loop of jobs; each round has a queue of its own.
func loopOf(id, loop string) string {
	return fmt.Sprintf(`{"id":%q,"spec":{"entrypoint":"main","templates":[{"name":"main","inputs":{"parameters":[{"name":"list","value":["p","q","r"]}]},"loop":{%s,
		"task":{"executor":{"type":"job","queue":"round"}}}}]}}`, id, loop)
}

// Rounds of a loop are nodes in the order in which they began.
func TestReadALoopOverItems(t *testing.T) {
	s := newStage(t)
	s.put(loopOf("l", `"items":"{{ inputs.parameters.list }}","parallel":2`))
	id := s.enqueue("flow.l", "")
	s.see(id, flow.Ready, "round:Created/pending")
	s.drain()
	s.see(id, flow.Suspended, "round/0:Ready/dispatched round/1:Ready/dispatched")
	zero := s.take(id+".round__0", "round")
	s.complete(id+".round__1", "round", `{}`)
	s.see(id, flow.Suspended, "round/0:Running/executing round/1:Succeeded/completed round/2:Ready/dispatched")
	s.complete(id+".round__2", "round", `{}`)
	s.settle(zero, queue.Outcome{Verb: queue.Fail, Error: "no", Class: queue.ClassFailed})
	r := s.see(id, flow.Failed, "round/0:Failed/failed round/1:Succeeded/completed round/2:Succeeded/completed")
	if r.Record.Error != "round 0: Failed: no" || r.Nodes[0].Msg != "no" {
		t.Errorf("the run failed with %q, and its node with %q", r.Record.Error, r.Nodes[0].Msg)
	}
	without := s.enqueue("flow.l", `{"parameters":{"list":[]}}`)
	s.drain()
	s.see(without, flow.Succeeded, "")
}

func TestReadALoopUntilAnExpressionHolds(t *testing.T) {
	s := newStage(t)
	s.put(loopOf("u", `"until":"last.outputs.parameters.done","limit":5`))
	id := s.enqueue("flow.u", "")
	s.drain()
	for i := range 3 {
		s.complete(fmt.Sprintf("%s.round__%d", id, i), "round", fmt.Sprintf(`{"done":%v}`, i == 2))
	}
	s.see(id, flow.Succeeded, "round/0:Succeeded/completed round/1:Succeeded/completed round/2:Succeeded/completed")
}

// fanOf returns a graph: a fans out to b, whose tokens meet before c.
func fanOf(id, more, count, synchronization string) string {
	return fmt.Sprintf(`{"id":%q%s,"nodes":[{"id":"a","action_id":"set"},{"id":"b","action_id":"job"},{"id":"c","action_id":"last"}],
		"actions":[{"id":"set","kind":"update_context","implementation":{"values":{}}},{"id":"job","kind":"job","implementation":{"queue":"b"}},{"id":"last","kind":"job","implementation":{"queue":"c"}}],
		"transitions":[{"id":"t","from":"a","to":"b","fan_out":{"spawn_count":%s}},{"from":"b","to":"c","synchronization":{"sibling_group":"t",%s}}]}`, id, more, count, synchronization)
}

// A token that has come to a fan-in waits for its siblings, and the limit of the fan-in decides for them.
func TestReadAFanOut(t *testing.T) {
	s := newStage(t)
	s.put(fanOf("g", "", "3", `"strategy":"all","timeout":"5m"`))
	id := s.enqueue("flow.g", "")
	s.see(id, flow.Ready, "a:Created/ b:Created/<a c:Created/<b")
	s.drain()
	s.see(id, flow.Suspended, "a:Succeeded/completed b/b0:Ready/dispatched b/b1:Ready/dispatched b/b2:Ready/dispatched c:Created/<b")
	s.complete(id+".b__b0", "b", `{}`)
	r := s.see(id, flow.Suspended, "a:Succeeded/completed b/b0:Succeeded/waiting_for_siblings b/b1:Ready/dispatched b/b2:Ready/dispatched c:Created/<b")
	for _, n := range r.Nodes[1:4] {
		if want := r.Nodes[1].Ended.Add(5 * time.Minute); !n.Deadline.Equal(want) {
			t.Errorf("%s has the deadline %v, want that of the fan-in, %v", n.Key, n.Deadline, want)
		}
	}
	s.settle(s.take(id+".b__b1", "b"), queue.Outcome{Verb: queue.Fail, Error: "no", Class: queue.ClassFailed})
	s.see(id, flow.Suspended, "a:Succeeded/completed b/b0:Succeeded/waiting_for_siblings b/b1:Failed/failed b/b2:Ready/dispatched c:Created/<b")
	s.complete(id+".b__b2", "b", `{}`)
	s.see(id, flow.Suspended, "a:Succeeded/completed b/b0:Succeeded/completed b/b1:Failed/failed b/b2:Succeeded/completed c:Ready/dispatched")
	s.complete(id+".c", "c", `{}`)
	s.see(id, flow.Succeeded, "a:Succeeded/completed b/b0:Succeeded/completed b/b1:Failed/failed b/b2:Succeeded/completed c:Succeeded/completed")
}

// When a fan-in is out of time, the run fails, or continues with the tokens that have come.
func TestReadAFanInOutOfTime(t *testing.T) {
	s := newStage(t)
	s.put(fanOf("fails", "", "2", `"strategy":"all","timeout":"20ms"`))
	s.put(fanOf("proceeds", "", "2", `"strategy":"all","timeout":"20ms","on_timeout":"proceed_with_available"`))
	id := s.enqueue("flow.fails", "")
	s.drain()
	s.complete(id+".b__b0", "b", `{}`)
	s.sweepUntil("the run has failed", func() bool { return s.get(id).Status.Ended() && s.get(id+".b__b1").Status.Ended() })
	s.see(id, flow.Failed, "a:Succeeded/completed b/b0:Succeeded/timed_out!synchronization_timeout b/b1:Cancelled/cancelled c:Created/")
	id = s.enqueue("flow.proceeds", "")
	s.drain()
	s.complete(id+".b__b0", "b", `{}`)
	s.sweepUntil("the run continues", func() bool { r := s.read(id); return r.Nodes[len(r.Nodes)-1].Task != "" })
	s.see(id, flow.Suspended, "a:Succeeded/completed b/b0:Succeeded/completed b/b1:Ready/dispatched c:Ready/dispatched")
}

// What was active when the time of a run was over has timed out with it, whatever its own limits are, and whether a sweep has
// ended it or not. A token that waited for its siblings is no exception.
func TestReadARunThatTimedOut(t *testing.T) {
	s := newStage(t)
	s.put(fanOf("late", `,"timeout":"1s"`, "2", `"strategy":"all"`))
	s.put(dagOf("lated", `,"timeout":"1s"`, job("x", `,"timeout":"1h","continueOn":{"timeout":true}`)+`,`+job("y", `,"dependencies":["x"]`), ""))
	graph, dag := s.enqueue("flow.late", ""), s.enqueue("flow.lated", "")
	s.drain()
	s.complete(graph+".b__b0", "b", `{}`)
	s.take(dag+".x", "x")
	s.see(dag, flow.Suspended, "x:Running/executing y:Created/pending<x")
	ended := func(ids ...string) func() bool {
		return func() bool {
			for _, id := range ids {
				if !s.get(id).Status.Ended() {
					return false
				}
			}
			return true
		}
	}
	want := "x:Timeout/timed_out!workflow_timeout y:Cancelled/cancelled"
	await.Until(t, "the time is over", func() bool { return s.get(graph).Overdue && s.get(dag).Overdue })
	if _, err := s.q.Cancel(s.ctx, dag, ""); err != nil { // it ends the run as timed out, and leaves its children to a sweep
		t.Fatal(err)
	}
	s.see(dag, flow.Timeout, want)
	s.sweepUntil("all have ended", ended(graph, dag, graph+".b__b1", dag+".x"))
	s.see(dag, flow.Timeout, want)
	s.see(graph, flow.Timeout, "a:Succeeded/completed b/b0:Succeeded/timed_out!workflow_timeout b/b1:Timeout/timed_out!workflow_timeout c:Created/")
}

// What was active when a run was cancelled is cancelled.
func TestReadARunThatWasCancelled(t *testing.T) {
	s := newStage(t)
	s.put(fanOf("g", "", "2", `"strategy":"all"`))
	id, unclaimed := s.enqueue("flow.g", ""), s.enqueue("flow.g", "")
	if _, err := s.q.Cancel(s.ctx, unclaimed, ""); err != nil {
		t.Fatal(err)
	}
	s.drain()
	s.complete(id+".b__b0", "b", `{}`)
	if _, err := s.q.Cancel(s.ctx, id, ""); err != nil {
		t.Fatal(err)
	}
	s.see(id, flow.Cancelled, "a:Succeeded/completed b/b0:Succeeded/cancelled b/b1:Cancelled/cancelled c:Created/")
	if r := s.see(unclaimed, flow.Cancelled, "a:Created/ b:Created/ c:Created/"); r.Version != "" {
		t.Errorf("a run that has never begun has the version %s", r.Version)
	}
}

// A wrapper and a workflow_call are tried again with a new child each time, and the newest is shown with its parts.
func TestReadWrappersAndCalls(t *testing.T) {
	s := newStage(t)
	s.put(dagOf("inner", "", job("leaf", ""), ""))
	s.put(dagOf("outer", "", `{"name":"wrapped","template":"again","retry":{"limit":1}},
		{"name":"called","executor":{"type":"workflow_call","workflow":"inner"},"retry":{"limit":1},"dependencies":["wrapped"]}`,
		`,{"name":"again","task":{"template":"body"}},{"name":"body","dag":{"tasks":[`+job("x", "")+`]}}`))
	id := s.enqueue("flow.outer", "")
	s.drain()
	s.see(id, flow.Suspended, "wrapped:Suspended/executing[task:Suspended/executing[x:Ready/dispatched]] called:Created/pending<wrapped")
	s.settle(s.take(id+".wrapped.task.x", "x"), queue.Outcome{Verb: queue.Fail, Error: "no"})
	s.see(id, flow.Suspended, "wrapped:Suspended/executing×2[task:Suspended/executing[x:Ready/dispatched]] called:Created/pending<wrapped")
	s.complete(id+".wrapped__r2.task.x", "x", `{}`)
	s.see(id, flow.Suspended, "wrapped:Succeeded/completed×2[task:Succeeded/completed[x:Succeeded/completed]] called:Suspended/executing[leaf:Ready/dispatched]")
	s.settle(s.take(id+".called.leaf", "leaf"), queue.Outcome{Verb: queue.Fail, Error: "no"})
	s.complete(id+".called__r2.leaf", "leaf", `{}`)
	want := "wrapped:Succeeded/completed×2[task:Succeeded/completed[x:Succeeded/completed]] called:Succeeded/completed×2[leaf:Succeeded/completed]"
	r := s.see(id, flow.Succeeded, want)
	if part := r.Nodes[0].Part; part.Template != "again" || part.Flow != "outer" || part.Version != "1" || r.Nodes[1].Part.Flow != "inner" {
		t.Errorf("the part is %+v, the run that it calls %+v", part, r.Nodes[1].Part)
	}
	if shallow, err := flow.Read(s.ctx, s.q, id, false); err != nil || shallow.Nodes[0].Part != nil {
		t.Errorf("a part was read although deep is false: %v", err)
	}
}

// A run is read with the version that it follows, live and ended.
func TestReadAnOldVersion(t *testing.T) {
	s := newStage(t)
	s.put(dagOf("v", "", job("old", ""), ""))
	live, over := s.enqueue("flow.v", ""), s.enqueue("flow.v", "")
	s.drain()
	s.complete(live+".old", "old", `{}`)
	s.see(live, flow.Succeeded, "old:Succeeded/completed")
	s.put(dagOf("v", "", job("new", ""), ""))
	live, over = over, live
	for id, phase := range map[string]flow.Phase{live: flow.Suspended, over: flow.Succeeded} {
		if r := s.read(id); r.Version != "1" || len(r.Nodes) != 1 || r.Nodes[0].Name != "old" || r.Phase != phase {
			t.Errorf("%s is version %q, %s: %s", id, r.Version, r.Phase, tell(r))
		}
	}
	given := s.enqueue("flow.v", `{"version":"1"}`)
	s.see(given, flow.Ready, "old:Created/pending")
}

// When records of children are gone, the others are still shown.
func TestReadARunWhoseRecordsAreGone(t *testing.T) {
	server := redistest.Embedded(t)
	s := newStageOn(t, server.Client())
	s.put(dagOf("d", "", job("x", "")+`,`+job("y", `,"dependencies":["x"]`)+`,`+job("z", `,"dependencies":["y"]`), ""))
	id := s.enqueue("flow.d", "")
	s.drain()
	for _, name := range []string{"x", "y", "z"} {
		s.complete(id+"."+name, name, `{}`)
	}
	s.see(id, flow.Succeeded, "x:Succeeded/completed y:Succeeded/completed z:Succeeded/completed")
	server.SetTime(time.Now().Add(2 * time.Minute)) // records are kept for a minute at least
	s.sweepUntil("the children are retained", func() bool { return true })
	remove := func(name string) {
		if d, err := s.q.Delete(s.ctx, id+"."+name); err != nil || !d.RemovedAt.IsZero() {
			t.Fatal(d, err)
		}
	}
	remove("x")
	if r := s.see(id, flow.Succeeded, "x:/ y:Succeeded/completed z:Succeeded/completed"); r.Removed != 1 || r.Version != "1" {
		t.Errorf("%d are gone, and the version is %q", r.Removed, r.Version)
	}
	remove("y")
	remove("z")
	s.see(id, flow.Succeeded, "x:/ y:/ z:/")
}

// What is no run is refused in words.
func TestReadWhatIsNoRun(t *testing.T) {
	s := newStage(t)
	other := queuetest.Open(t, s.q.Client(), queue.Config{Namespace: s.q.Namespace() + "-other"})
	s.put(dagOf("d", "", job("x", ""), ""))
	id := s.enqueue("flow.d", "")
	s.drain()
	for _, test := range []struct {
		q    *queue.Queue
		id   string
		is   error
		want string
	}{
		{s.q, id + ".x", refusal.ErrInvalid, "this is a task of the kind job"},
		{s.q, "0-1M84X556YV18C8Z1R6", refusal.ErrNotFound, ""},
		{s.q, "nonsense", refusal.ErrInvalid, ""},
		{other, id, refusal.ErrNotFound, ""},
		{s.q, s.enqueue("flow.nobody", ""), refusal.ErrNotFound, ""},
	} {
		if r, err := flow.Read(s.ctx, test.q, test.id, true); !errors.Is(err, test.is) || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("Read of %s returns %v and %v, want %s", test.id, r, err, test.want)
		}
	}
}
