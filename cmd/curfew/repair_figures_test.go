package main

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/metrics"
	"github.com/curfew-dev/curfew/queue"
)

// totals returns the counters that a scrape has and that are not 0, and curfew_up.
func totals(t *testing.T, q *queue.Queue) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewNamespace(q, metrics.Config{CacheFor: time.Nanosecond}))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, l := range m.GetLabel() {
				if l.GetName() == "status" || l.GetName() == "mode" {
					name += " " + l.GetValue()
				}
			}
			switch {
			case family.GetType() == dto.MetricType_COUNTER:
				if n := m.GetCounter().GetValue(); n != 0 { // what usually happens is exported as 0 before
					all[name] += n
				}
			case family.GetName() == "curfew_up", name == "curfew_waits_open any":
				all[name] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}

// What was counted cannot be counted again: records of ended tasks are removed. So a repair lists figures that are not listed, removes what
// is no count, sets counters of what is there now, and invents no total. Tasks run whatever the figures are.
func TestRepairInventsNoFigures(t *testing.T) {
	const enqueued, completed, failed, timeouts = "curfew_tasks_enqueued_total", "curfew_tasks_finished_total COMPLETED", "curfew_tasks_finished_total FAILED", "curfew_task_timeouts_total"
	sound := map[string]float64{"curfew_up": 1, "curfew_waits_open any": 1, enqueued: 6, completed: 2, failed: 2, timeouts: 1}
	with := func(changes map[string]float64) map[string]float64 {
		all := maps.Clone(sound)
		for name, n := range changes {
			if all[name] = n; n < 0 {
				delete(all, name)
			}
		}
		return all
	}
	rest := map[string]float64{enqueued: 2, completed: -1, failed: -1, timeouts: -1} // of the other kind
	unread := maps.Clone(rest)
	unread["curfew_up"] = 0
	for _, row := range []struct {
		what    string
		damage  func(s *damagedFigures)
		found   bool // by fsck
		mended  bool // by the repair
		damaged map[string]float64
		after   map[string]float64 // the repair
	}{
		{"the list of kinds is lost", func(s *damagedFigures) { s.do("DEL", s.root+":kinds") }, true, true, map[string]float64{enqueued: -1, completed: -1, failed: -1, timeouts: -1}, nil},
		{"a counter of waits is wrong", func(s *damagedFigures) { s.do("HSET", s.root+":queue:gpu", "unbounded_any", 7) }, true, true, map[string]float64{"curfew_waits_open any": 7}, nil},
		{"the hash has another type", func(s *damagedFigures) { s.do("DEL", s.figures); s.do("SET", s.figures, "x") }, true, false, unread, unread},
		{"the hash is lost", func(s *damagedFigures) { s.do("DEL", s.figures) }, false, false, rest, rest},
		{"a count is a text", func(s *damagedFigures) { s.do("HSET", s.figures, "gpu ended COMPLETED", "many") }, true, true, map[string]float64{completed: -1}, map[string]float64{completed: -1}},
		{"a count is below 0", func(s *damagedFigures) { s.do("HSET", s.figures, "gpu ended COMPLETED", "-5") }, true, true, map[string]float64{completed: -1}, map[string]float64{completed: -1}},
		{"a count is too large", func(s *damagedFigures) { s.do("HSET", s.figures, "gpu enqueued client now", "1e300") }, true, true, map[string]float64{enqueued: 2}, map[string]float64{enqueued: 2}},
		{"a count is a fraction", func(s *damagedFigures) { s.do("HSET", s.figures, "gpu ended COMPLETED", "1.5") }, true, true, map[string]float64{completed: -1}, map[string]float64{completed: -1}},
		{"a bucket is below 0", func(s *damagedFigures) { s.do("HSET", s.figures, "gpu duration 1", "-1") }, true, true, nil, nil},
		{"a field has no meaning", func(s *damagedFigures) { s.do("HSET", s.figures, "gpu what is this", 5, " ", 5, "gpu ", 5) }, false, false, nil, nil},
	} {
		t.Run(row.what, func(t *testing.T) {
			s := newDamagedFigures(t)
			s.want("before", sound)
			row.damage(s)
			s.want("damaged", with(row.damaged))
			for _, args := range [][]string{{"fsck"}, {"fsck", "--repair", "--dry-run"}} {
				if code, out, errs := curfew(t, append(args, "--redis", s.url)...); (code == app.ExitFailed) != row.found || code != 0 && code != app.ExitFailed {
					t.Errorf("%v: exit %d, %s%s", args, code, out, errs)
				}
			}
			s.want("after what only looks", with(row.damaged))
			if code, out, errs := curfew(t, "fsck", "--repair", "--redis", s.url); (code == 0) != (!row.found || row.mended) {
				t.Errorf("fsck --repair: exit %d, %s%s", code, out, errs)
			}
			s.want("repaired", with(row.after))
			id := s.run(queue.Outcome{Verb: queue.Complete})
			if r, err := s.q.Get(t.Context(), id); err != nil || r.Status != queue.Completed {
				t.Errorf("a task after the repair: %v %v", r, err)
			}
		})
	}
}

// damagedFigures is a namespace whose figures a test damages. It has an agent that waits for its child, and ended tasks.
type damagedFigures struct {
	*testing.T
	q                  *queue.Queue
	url, root, figures string
	worker             *queuetest.Taker
}

func newDamagedFigures(t *testing.T) *damagedFigures {
	t.Helper()
	s := &damagedFigures{T: t}
	server := redistest.Embedded(t)
	s.q, s.url = queuetest.Open(t, server.Client(), queue.Config{Namespace: "curfew"}), "redis://"+server.Addr()
	s.root = s.q.Root(0)
	s.figures = s.root + ":figures:render"
	s.worker = &queuetest.Taker{Q: s.q, Worker: "w"}
	s.run(queue.Outcome{Verb: queue.Complete})
	s.run(queue.Outcome{Verb: queue.Complete})
	s.run(queue.Outcome{Verb: queue.Fail, Error: "no"})
	s.run(queue.Outcome{Verb: queue.Fail, Class: queue.ClassTimeout})
	agent := queuetest.Enqueue(t, s.q, queue.Task{Kind: "agent", Queue: "gpu"}).ID
	epoch := s.worker.Take(t, agent, "gpu").Epoch
	if _, err := claim.Of(s.q).Suspend(t.Context(), claim.Suspension{Agent: agent, Epoch: epoch, Worker: "w", Children: []queue.Task{{ID: agent + ".c", Kind: "agent", Queue: "other"}},
		Wait: claim.Wait{Entry: 1, Digest: "d", Mode: queue.WaitAny, Members: []claim.Member{{ID: agent + ".c"}}}}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *damagedFigures) do(args ...any) {
	s.Helper()
	if err := s.q.Engine().Client().Do(s.Context(), args...).Err(); err != nil {
		s.Fatal(err)
	}
}

// run runs a task of the kind render.
func (s *damagedFigures) run(o queue.Outcome) string {
	s.Helper()
	o.ID = queuetest.Enqueue(s.T, s.q, queue.Task{Kind: "render", Queue: "gpu"}).ID
	o.Epoch = s.worker.Take(s.T, o.ID, "gpu").Epoch
	s.worker.Settle(s.T, o)
	return o.ID
}

func (s *damagedFigures) want(when string, want map[string]float64) {
	s.Helper()
	if got := totals(s.T, s.q); !maps.Equal(got, want) {
		s.Errorf("%s: the metrics are %v, want %v", when, got, want)
	}
}
