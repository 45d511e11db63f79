package stages

import (
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Records are the records of tasks, nil for one that is not there.
func (s *Stage) Records(q *queue.Queue, ids []string) map[string]*queue.Record {
	s.Helper()
	list, err := q.GetAll(s.Context(), ids)
	if err != nil {
		s.Fatal(err)
	}
	records := make(map[string]*queue.Record, len(ids))
	for i, id := range ids {
		records[id] = list[i]
	}
	return records
}

// AllEnded tells whether all tasks have ended that are there.
func (s *Stage) AllEnded(ids []string) bool {
	s.Helper()
	for _, r := range s.Records(s.Q, ids) {
		if r != nil && !r.Status.Ended() {
			return false
		}
	}
	return true
}

// EndedOnce checks that each task that is there has ended, by one end in the events.
func (s *Stage) EndedOnce(records map[string]*queue.Record, events []Event) {
	s.Helper()
	ends := map[string]int{}
	for _, e := range events {
		if e.Terminal() {
			ends[e.ID]++
		}
	}
	for id, r := range records {
		switch {
		case r == nil: // it was lost, which is for the test to judge
		case !r.Status.Ended():
			s.Complain("%s is still %s", id, r.Status)
		case ends[id] != 1:
			s.Complain("%s has %d ends in the events, want 1", id, ends[id])
		}
	}
}

// AsTold checks that everything in the ledger is so, but for tasks that are lost: what was
// acknowledged is there, and has ended as callers were told.
func (s *Stage) AsTold(told *Ledger, records map[string]*queue.Record, lost func(id string) bool) {
	s.Helper()
	for _, id := range told.Tasks {
		if records[id] == nil && !lost(id) {
			s.Complain("%s was acknowledged and is not there", id)
		}
	}
	for id, ends := range told.Told {
		for _, end := range ends {
			if r := records[id]; !lost(id) && (r == nil || EndOf(r) != end) {
				s.Complain("a caller was told that it ended %s as %v, and it is %+v", id, end, r)
			}
		}
	}
}

// Audit checks that an audit finds nothing.
func (s *Stage) Audit(q *queue.Queue) {
	s.Helper()
	findings, err := inspect.Audit(s.Context(), q)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range findings {
		s.Complain("audit: %s", f)
	}
}
