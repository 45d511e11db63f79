package queue

import (
	"fmt"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// refusedAgent is why an agent may not do what it wanted to: s, if it is a wait.
func refusedAgent(word string, more []any, s *Suspension) error {
	at := func(i int) string {
		if i < len(more) {
			return engine.Text(more[i])
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
	case "INVALID":
		return refusal.Invalid(at(0), "%s", at(1))
	case "CHILD":
		if n := engine.Number(at(0)); s != nil && n >= 1 && n <= int64(len(s.Children)) {
			c := submission{task: &s.Children[n-1]}
			c.read(more[1:])
			return &ChildError{c.task.ID, c.err}
		}
	}
	return fmt.Errorf("unexpected answer %s %.100v", word, more)
}

// ChildError says which child of a suspension was refused, and why. Nothing was done.
type ChildError struct {
	ID  string
	Err error
}

// Error names the child.
func (e *ChildError) Error() string { return "child " + e.ID + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *ChildError) Unwrap() error { return e.Err }
