package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/await"
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

var _ = context.Background
var _ = errors.Is
var _ = refusal.ErrInvalid
