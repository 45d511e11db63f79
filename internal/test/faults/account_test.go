package faults

import (
	"maps"
	"slices"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
)

// scene is the content of a namespace: its events, and its records.
type scene struct {
	events  []harness.Event
	fates   map[string]*fate
	records map[string]*queue.Record
}

// survey checks that an idle namespace is consistent: replaying the events gives the records and
// the counters, no record is without events, and an audit finds nothing.
func (s *stage) survey(q *queue.Queue) *scene {
	s.Helper()
	return s.judge(q, s.Events(q))
}

// judge is like survey, for events that were read before.
func (s *stage) judge(q *queue.Queue, events []harness.Event) *scene {
	s.Helper()
	fates, wrong := fold(events)
	for _, why := range wrong {
		s.Complain("the events contradict each other: %s", why)
	}
	ids := slices.Sorted(maps.Keys(fates))
	here := &scene{events: events, fates: fates, records: s.Records(q, ids)}
	for _, id := range ids {
		if r := here.records[id]; !fates[id].is(r) {
			s.Complain("%s: the events give %+v, the record is %+v", id, *fates[id], r)
		}
	}
	s.strangers(q, fates)
	s.counted(q, fates)
	s.Audit(q)
	return here
}

// strangers complains about records without events.
func (s *stage) strangers(q *queue.Queue, fates map[string]*fate) {
	s.Helper()
	prefix := q.Root(0) + ":spec:"
	found := q.Client().Scan(s.Context(), 0, prefix+"*", 1000).Iterator()
	for found.Next(s.Context()) {
		if id := found.Val()[len(prefix):]; fates[id] == nil {
			s.Complain("%s has a record but no event", id)
		}
	}
	if err := found.Err(); err != nil {
		s.Fatal(err)
	}
}

// counted compares the counters with the events.
func (s *stage) counted(q *queue.Queue, fates map[string]*fate) {
	s.Helper()
	var want, got queue.QueueStats
	for _, f := range fates {
		want.Enqueued++
		switch {
		case f.Status == queue.Completed:
			want.Completed++
		case f.Status == queue.Failed:
			want.Failed++
		case f.Status == queue.Cancelled:
			want.Cancelled++
		case f.Status == queue.Running:
			want.Running++
		}
		if f.TimedOut {
			want.TimedOut++
		}
	}
	stats, err := q.Stats(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, each := range stats.Queues {
		got.Enqueued += each.Enqueued
		got.Completed += each.Completed
		got.Failed += each.Failed
		got.Cancelled += each.Cancelled
		got.Running += each.Running
		got.TimedOut += each.TimedOut
	}
	if got != want {
		s.Complain("the counters are\n%+v, the events give\n%+v", got, want)
	}
}

// account surveys a namespace in which all tasks have ended, and compares it with the ledger. Each
// task must have ended once, and, unless it is lost, as the replies to callers say.
func (s *stage) account(lost func(id string) bool) *scene {
	s.Helper()
	return s.accountOf(s.Events(s.Q), lost)
}

// accountOf is like account, for events that were read before.
func (s *stage) accountOf(events []harness.Event, lost func(id string) bool) *scene {
	s.Helper()
	here, told := s.judge(s.Q, events), s.Ledger.Copy()
	known := map[string]bool{}
	for _, id := range append(told.Tasks, told.Unknown...) {
		known[id] = true
	}
	for id := range here.fates {
		if !known[id] {
			s.Complain("%s exists, but its enqueue failed as not stored", id)
		}
	}
	s.EndedOnce(here.records, here.events)
	s.AsTold(told, here.records, lost)
	return here
}

// nothing says of every task that it is not lost.
func nothing(string) bool { return false }

// untroubled checks that no call failed.
func (s *stage) untroubled() {
	s.Helper()
	told := s.Ledger.Copy()
	for _, err := range told.Trouble {
		s.Complain("a call failed: %v", err)
	}
	if n := len(told.Unknown) + len(told.Refused); n > 0 {
		s.Complain("%d tasks were not acknowledged", n)
	}
}
