package curfewtest

import (
	"os"

	"github.com/curfew-dev/curfew/agentwait"
)

// AssertReplays replays recorded agents with the handlers of the stage's worker, as a deploy of these
// handlers would. file has the recordings, one a line, as `curfew agent export` writes them. It
// reports an error for each agent whose replay differs: after the deploy that agent would be held. It
// returns the number of agents that were replayed.
//
// A replay ends before the first call that the agent has not made yet, so it has no effects: see
// [agentwait.Recording.Replay].
func (s *Stage) AssertReplays(file string) int {
	s.tb.Helper()
	in, err := os.Open(file)
	if err != nil {
		s.tb.Fatalf("AssertReplays: %v", err)
	}
	defer in.Close()
	recordings, err := agentwait.ReadRecordings(in)
	if err != nil {
		s.tb.Fatalf("AssertReplays: %s: %v", file, err)
	}
	for _, r := range recordings {
		if err := r.Replay(s.ctx, s.Worker); err != nil {
			s.tb.Errorf("Agent %s of kind %q cannot continue with this code: %v", r.Record.ID, r.Record.Kind, err)
		}
	}
	return len(recordings)
}
