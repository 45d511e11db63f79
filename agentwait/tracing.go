package agentwait

import (
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
)

// traceWait links the span of this run to the members whose ends decided its newest wait. It makes
// no call, because the run has already read their records.
func (a *Agent) traceWait(mode string, o *queue.WaitOutcome) {
	if !a.span.Recording() || a.waitedAgain() {
		return
	}
	var members []spans.Task
	for _, name := range o.Settled {
		if r := a.records[name]; r != nil {
			members = append(members, spans.Task{ID: r.ID, Kind: r.Kind, Queue: r.Queue, Headers: r.Headers})
		}
	}
	a.span.Waited(mode, members)
}

// waitedAgain reports whether an earlier run has made a later wait. Then that run has linked its own
// span to this wait.
func (a *Agent) waitedAgain() bool {
	for number, entry := range a.memory.Journal {
		if _, wait := queue.ReadWaitOutcome(entry); wait && number > a.entry {
			return true
		}
	}
	return false
}
