package faults

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// stage is a new namespace on a new server. It records all events.
type stage struct {
	*harness.Stage
	oneReaper bool // only the test runs a reaper, not its fleets
}

// newStage opens a namespace. Participants connect to addr, the test itself to direct.
func newStage(t *testing.T, addr, direct string) *stage {
	t.Helper()
	s := &stage{Stage: harness.New(t, direct, queue.Config{Events: "all"})}
	s.Addr = addr
	return s
}

// Enqueue is like that of harness.Stage, for tasks whose records must exist until account.
func (s *stage) Enqueue(tasks ...queue.Task) []string {
	s.Helper()
	kept(tasks)
	return s.Stage.Enqueue(tasks...)
}

// work runs a worker with these handlers.
func (s *stage) work(w *worker.Worker, handlers map[string]worker.Handler) (stop func()) {
	for kind, h := range handlers {
		w.HandleRaw(kind, h)
	}
	return s.Run(w.Run)
}
