package shards

import (
	"slices"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// account ends a load and checks that it adds up: no call failed, and each acknowledged
// task whose record survived was completed, by one end in the events of its partition. It
// returns how many were acknowledged, and how many of them are lost.
func (s *stage) account(l *bench.Load) (acked, lost int) {
	s.Helper()
	var ids []string
	for _, m := range slices.Concat(l.Stop()...) {
		if m.Err != nil {
			s.Errorf("an enqueue failed: %v", m.Err)
			continue
		}
		ids = append(ids, m.ID)
	}
	live := func(r *queue.Record) bool { return r != nil && !r.Status.Ended() }
	var records []*queue.Record
	eventually(s.T, "all that survived has ended", func() bool {
		var err error
		if records, err = s.q.GetAll(s.Context(), ids); err != nil {
			s.Fatal(err)
		}
		return !slices.ContainsFunc(records, live)
	})
	ends := s.ends()
	for i, r := range records {
		switch {
		case r == nil:
			lost++
		case r.Status != queue.Completed:
			s.Errorf("%s is %s: %s", r.ID, r.Status, r.Error)
		case ends[ids[i]] != 1:
			s.Errorf("%s has %d ends in the events, want 1", r.ID, ends[r.ID])
		}
	}
	s.audit()
	return len(ids), lost
}

// ends counts the terminal events of each task.
func (s *stage) ends() map[string]int {
	s.Helper()
	ends := map[string]int{}
	for p := range s.q.Partitions() {
		const page = 5000
		for from := "-"; from != ""; {
			entries, err := s.q.Client().XRangeN(s.Context(), s.q.EventsKey(p), from, "+", page).Result()
			if err != nil {
				s.Fatal(err)
			}
			from = ""
			for _, e := range entries {
				for _, event := range events.In(p, e) {
					switch event.Kind {
					case "task_completed", "task_failed", "task_cancelled", "task_timed_out":
						ends[event.TaskID]++
					}
				}
				if len(entries) == page {
					from = "(" + e.ID
				}
			}
		}
	}
	return ends
}

func (s *stage) audit() {
	s.Helper()
	findings, err := inspect.Audit(s.Context(), s.q)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range findings {
		s.Errorf("audit: %s", f)
	}
}

// accountOf is account, and how much may be lost: what a master had acknowledged and not
// yet sent to its replica.
func (s *stage) accountOf(l *bench.Load) {
	s.Helper()
	acked, lost := s.account(l)
	s.Logf("%d tasks, of which %d were acknowledged and lost", acked, lost)
	if acked < 100 || lost > acked/50 {
		s.Errorf("%d of %d acknowledged tasks are lost", lost, acked)
	}
}
