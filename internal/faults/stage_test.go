package faults

import (
	"testing"

	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// stage is a namespace of a test's own on a server of its own, that tells of all
// transitions.
type stage struct {
	*stages.Stage
	oneReaper bool // the test's own; fleets have none
}

// newStage makes a namespace. Participants connect to addr, the operator to direct.
func newStage(t *testing.T, addr, direct string) *stage {
	t.Helper()
	s := &stage{Stage: stages.New(t, direct, queue.Config{Events: "all"})}
	s.Addr = addr
	return s
}

// Enqueue is that of the stage, of tasks whose records stay until the account.
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
