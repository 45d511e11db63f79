package story

import (
	"context"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/internal/engine"
)

// call makes a call as the engine does, without its repeats, and notes what the call reports.
func (s *stage) call(name string, args ...any) (any, error) {
	reply, err := s.library.Run(s.ctx, s.rdb, name, s.root, args...)
	if err != nil {
		return nil, err
	}
	reply, report, err := engine.ReadReport(0, reply)
	s.note(s.ctx, report)
	return reply, err
}

// note keeps a report for the command `reports`.
func (s *stage) note(_ context.Context, r engine.Report) {
	s.reports.TimedOut = append(s.reports.TimedOut, r.TimedOut...)
	s.reports.Woken = append(s.reports.Woken, r.Woken...)
}

// reports: what the calls since the last such command have reported, a line each.
func (s *stage) reported(words) []string {
	var lines []string
	for _, t := range s.reports.TimedOut {
		lines = append(lines, fmt.Sprintf("timed_out %s %s %s %s at=%s lag=%s", short(t.ID), t.Kind, t.Queue, t.Type, since(fmt.Sprint(t.Due.UnixMilli())), t.Lag))
	}
	for _, w := range s.reports.Woken {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("woken %s %s %s %s %s %s", short(w.ID), w.Kind, w.Queue, w.Reason, short(w.Member), w.MemberTimeout)))
	}
	s.reports = engine.Report{}
	if lines == nil {
		return []string{"no reports"}
	}
	return lines
}
