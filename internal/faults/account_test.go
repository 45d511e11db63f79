package faults

import (
	"context"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// scene is all that a namespace holds at one moment: events, and the records.
type scene struct {
	events  []event
	fates   map[string]*fate
	records map[string]*queue.Record
}

// history reads the event stream.
func history(ctx context.Context, rdb *redis.Client, key string) ([]event, error) {
	const page = 5000
	var all []event
	for from := "-"; ; {
		entries, err := rdb.XRangeN(ctx, key, from, "+", page).Result()
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			all = append(all, readEvents(e)...)
		}
		if len(entries) < page {
			return all, nil
		}
		from = "(" + entries[len(entries)-1].ID
	}
}

// survey checks that a namespace at rest is one that really was: the events, folded,
// give the records, there is no record without events, and an audit finds nothing.
func (s *stage) survey(q *queue.Queue) *scene {
	s.Helper()
	events, err := history(s.ctx, q.Client().(*redis.Client), q.EventsKey(0))
	if err != nil {
		s.Fatal(err)
	}
	return s.judge(q, events)
}

// judge is survey where the stream was read while it grew.
func (s *stage) judge(q *queue.Queue, events []event) *scene {
	s.Helper()
	fates, wrong := fold(events)
	for _, why := range wrong {
		s.complain("the events contradict each other: %s", why)
	}
	ids := slices.Sorted(maps.Keys(fates))
	list, err := q.GetAll(s.ctx, ids)
	if err != nil {
		s.Fatal(err)
	}
	here := &scene{events: events, fates: fates, records: map[string]*queue.Record{}}
	for i, id := range ids {
		if here.records[id] = list[i]; !fates[id].is(list[i]) {
			s.complain("%s: the events tell %+v, the record is %+v", id, *fates[id], list[i])
		}
	}
	s.strangers(q, fates)
	s.counted(q, fates)
	s.audit(q)
	return here
}

// strangers finds records of which no event tells.
func (s *stage) strangers(q *queue.Queue, fates map[string]*fate) {
	s.Helper()
	prefix := q.Root(0) + ":spec:"
	found := q.Client().(*redis.Client).Scan(s.ctx, 0, prefix+"*", 1000).Iterator()
	for found.Next(s.ctx) {
		if id := found.Val()[len(prefix):]; fates[id] == nil {
			s.complain("%s has a record, and no event tells of it", id)
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
	stats, err := q.Stats(s.ctx)
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
		s.complain("the counters are\n%+v, the events give\n%+v", got, want)
	}
}

func (s *stage) audit(q *queue.Queue) {
	s.Helper()
	findings, err := inspect.Audit(s.ctx, q)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range findings {
		s.complain("audit: %s", f)
	}
}

// account surveys a namespace in which all is over, and compares it with the ledger,
// of which some may be lost. Each task has ended once, and what is not lost as callers
// were told.
func (s *stage) account(lost func(id string) bool) *scene {
	s.Helper()
	events, err := history(s.ctx, s.rdb, s.q.EventsKey(0))
	if err != nil {
		s.Fatal(err)
	}
	return s.accountOf(events, lost)
}

func (s *stage) accountOf(events []event, lost func(id string) bool) *scene {
	s.Helper()
	here, told := s.judge(s.q, events), s.ledger.copy()
	known := map[string]bool{}
	for _, id := range append(told.tasks, told.unknown...) {
		known[id] = true
	}
	for id, f := range here.fates {
		if f.ends != 1 {
			s.complain("%s has %d ends, want 1: %+v", id, f.ends, *f)
		}
		if !known[id] {
			s.complain("%s is there, and its producer was told that it was not stored", id)
		}
	}
	for _, id := range told.tasks {
		if here.fates[id] == nil && !lost(id) {
			s.complain("%s was acknowledged and is not there", id)
		}
	}
	for id, result := range told.settled {
		if r := here.records[id]; !lost(id) && (r == nil || r.Status != queue.Completed || string(r.Result) != result) {
			s.complain("the completion of %s as %q was acknowledged, and it is %+v", id, result, r)
		}
	}
	for id := range told.cancelled {
		if r := here.records[id]; !lost(id) && (r == nil || r.Status != queue.Cancelled) {
			s.complain("the cancelling of %s was acknowledged, and it is %+v", id, r)
		}
	}
	return here
}

// nothing is lost.
func nothing(string) bool { return false }

// untroubled checks that no caller was told anything but yes.
func (s *stage) untroubled() {
	s.Helper()
	told := s.ledger.copy()
	for _, err := range told.trouble {
		s.complain("a caller was told: %v", err)
	}
	if n := len(told.unknown) + len(told.refused); n > 0 {
		s.complain("%d tasks were not acknowledged", n)
	}
}

// complain is Errorf that gives up when it is a flood.
func (s *stage) complain(format string, args ...any) {
	s.Helper()
	s.Errorf(format, args...)
	if s.complaints++; s.complaints == 20 {
		s.Fatal("and so on")
	}
}
