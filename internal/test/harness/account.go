package harness

import (
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Records returns the records of tasks by id, with nil for a task that does not exist.
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

// AllEnded reports whether every task that exists has ended.
func (s *Stage) AllEnded(ids []string) bool {
	s.Helper()
	for _, r := range s.Records(s.Q, ids) {
		if r != nil && !r.Status.Ended() {
			return false
		}
	}
	return true
}

// EndedOnce checks that each task that exists has ended, with one terminal event.
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
		case r == nil: // lost: the test decides whether that is allowed
		case !r.Status.Ended():
			s.Complain("%s is still %s", id, r.Status)
		case ends[id] != 1:
			s.Complain("%s has %d ends in the events, want 1", id, ends[id])
		}
	}
}

// AsTold compares the ledger with the records: each acknowledged task exists, and has ended as
// the replies to callers said. Tasks for which lost returns true are not checked.
func (s *Stage) AsTold(told *Ledger, records map[string]*queue.Record, lost func(id string) bool) {
	s.Helper()
	for _, id := range told.Tasks {
		if records[id] == nil && !lost(id) {
			s.Complain("%s was acknowledged and does not exist", id)
		}
	}
	for id, ends := range told.Told {
		for _, end := range ends {
			if r := records[id]; !lost(id) && (r == nil || EndOf(r) != end) {
				s.Complain("a reply said that %s ended as %v, and its record is %+v", id, end, r)
			}
		}
	}
}

// Audit runs inspect.Audit, and fails the test for each finding.
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
