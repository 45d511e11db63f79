package claim

import (
	"fmt"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// refusedAgent turns the reply that refuses a call of an agent into an error. s is the suspension
// that was refused, nil for other calls.
func refusedAgent(word string, values []any, s *Suspension) error {
	at := func(i int) string {
		if i < len(values) {
			return engine.Text(values[i])
		}
		return ""
	}
	switch word {
	case "LOST":
		return fmt.Errorf("%w: it is %s", refusal.ErrNotHeld, at(0))
	case "CANCELLING":
		return refusal.ErrStopping
	case "MISSING":
		return refusal.ErrNotFound
	case "DIVERGED":
		if s != nil {
			return fmt.Errorf("%w: it was at %q, and is now at %q", refusal.ErrDiverged, at(0), s.Wait.Label)
		}
	case "FOREIGN":
		return fmt.Errorf("%w: %s", refusal.ErrNotOwner, at(0))
	case "UNKNOWN":
		return fmt.Errorf("member %s: %w", at(0), refusal.ErrNotFound)
	case "CHILD":
		if n := engine.Number(at(0)); s != nil && n >= 1 && n <= int64(len(s.Children)) {
			child := &s.Children[n-1]
			return &ChildError{child.ID, queue.ReadRefusal(child, values[1:])}
		}
	}
	return engine.Unexpected("answer "+word, values)
}

// ChildError reports which child of a suspension was refused, and why. Nothing was changed.
type ChildError struct {
	ID  string
	Err error
}

// Error returns the child's id and the reason.
func (e *ChildError) Error() string { return "child " + e.ID + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ChildError) Unwrap() error { return e.Err }
