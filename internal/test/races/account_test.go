package races

import (
	"strings"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
)

// account checks that a namespace in which all tasks have ended is consistent. ids are all tasks that
// it has had. account returns their records.
func (s *stage) account(ids []string) map[string]*queue.Record {
	s.Helper()
	records, events := s.Records(s.Q, ids), s.Events(s.Q)
	for id, r := range records {
		if r == nil {
			s.Complain("%s is lost: it has no record", id)
		}
	}
	if len(records) != len(ids) {
		s.Errorf("the test has %d ids of %d tasks", len(ids), len(records))
	}
	s.EndedOnce(records, events)
	s.checkEvents(records, events)
	s.checkCounts(records)
	s.Audit(s.Q)
	return records
}

// checkEvents checks that the end of each task in the events is that of its record, at a possible time.
func (s *stage) checkEvents(records map[string]*queue.Record, events []harness.Event) {
	s.Helper()
	for _, e := range events {
		r := records[e.ID]
		if r == nil {
			s.Complain("the event %s is of %s, which is not a task of this test", e.Kind, e.ID)
			continue
		}
		if !e.Terminal() {
			continue
		}
		if want := endOf(r); e.Kind != want {
			s.Complain("%s has the event %s, its record says %s", e.ID, e.Kind, want)
		}
		if until := r.Until.UnixMilli(); !r.Until.IsZero() {
			if e.Kind == "task_completed" && e.At > until {
				s.Complain("%s was completed %d ms after its deadline", e.ID, e.At-until)
			}
			if r.TimeoutType == "execution" && e.At <= until {
				s.Complain("%s timed out %d ms before its first possible instant", e.ID, until-e.At)
			}
		}
	}
}

// endOf returns the kind of the event that belongs to the end in a record.
func endOf(r *queue.Record) string {
	if r.TimedOut {
		return "task_timed_out"
	}
	return "task_" + strings.ToLower(string(r.Status))
}

// checkCounts checks that the counters are those of the records, and that every clock is empty.
func (s *stage) checkCounts(records map[string]*queue.Record) {
	s.Helper()
	want := map[string]queue.QueueStats{}
	for _, r := range records {
		if r == nil {
			continue
		}
		c := want[r.Queue]
		c.Queue = r.Queue
		c.Enqueued++
		switch r.Status {
		case queue.Completed:
			c.Completed++
		case queue.Failed:
			c.Failed++
			c.Dead++
		case queue.Cancelled:
			c.Cancelled++
			c.Dead++
		}
		if r.TimedOut {
			c.TimedOut++
		}
		want[r.Queue] = c
	}
	stats, err := s.Q.Stats(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, got := range stats.Queues {
		if got != want[got.Queue] {
			s.Complain("the counters of %s are\n%+v, the records give\n%+v", got.Queue, got, want[got.Queue])
		}
	}
	if len(stats.Queues) != len(want) {
		s.Complain("Stats has %d queues, the records have %d", len(stats.Queues), len(want))
	}
	if stats.Deadlines+stats.Limits+stats.Delayed+stats.Draining+stats.Broken != 0 {
		s.Complain("a clock is not empty: %+v", stats)
	}
}
