package shards

import (
	"errors"
	"slices"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// account stops a load and checks its tasks: no enqueue failed, unless an election was slow, and each acknowledged task whose
// record survived is COMPLETED and has one end in the events of its partition. It returns how many
// tasks were acknowledged, and how many of them are lost.
func (s *stage) account(l *bench.Load) (acked, lost int) {
	s.Helper()
	var ids []string
	for _, m := range slices.Concat(l.Stop()...) {
		if m.Err != nil {
			if !s.slow || !errors.Is(m.Err, refusal.ErrUnavailable) { // a call is tried for 5 s
				s.Errorf("an enqueue failed: %v", m.Err)
			}
			continue
		}
		ids = append(ids, m.ID)
	}
	await.Until(s, "all surviving tasks have ended", func() bool { return s.AllEnded(ids) })
	records := s.Records(s.Q, ids)
	s.EndedOnce(records, s.Events(s.Q))
	for _, r := range records {
		switch {
		case r == nil:
			lost++
		case r.Status != queue.Completed:
			s.Complain("%s is %s: %s", r.ID, r.Status, r.Error)
		}
	}
	s.Audit(s.Q)
	return len(ids), lost
}

// accountOf is like account, and fails if more than one task in 50 is lost. A failover can lose
// tasks that a master had acknowledged and not yet sent to its replica.
func (s *stage) accountOf(l *bench.Load) {
	s.Helper()
	acked, lost := s.account(l)
	s.Logf("%d tasks were acknowledged, and %d of them are lost", acked, lost)
	if acked < 100 || lost > acked/50 {
		s.Errorf("%d of %d acknowledged tasks are lost", lost, acked)
	}
}
