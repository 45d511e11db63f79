package queue

import (
	"errors"
	"fmt"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Errors of agents.
var (
	// ErrNotOwner means that a task is no child of the agent that named it.
	ErrNotOwner = errors.New("Task not owned by agent")
	// ErrNotHeld means that the agent is no longer the caller's: somebody else runs it, it
	// waits, or it has ended. Drop what was done, and do not report it.
	ErrNotHeld = errors.New("the agent is not this attempt's any more")
	// ErrStopping means that the agent was cancelled, and has its grace to clean up.
	ErrStopping = fmt.Errorf("%w: the agent is to stop, and begins nothing any more", ErrCancelled)
	// ErrDiverged means that an agent's replay came to something else than its first run.
	ErrDiverged = errors.New("the replay differs from what the agent did before")
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
		return fmt.Errorf("%w: it is %s", ErrNotHeld, at(0))
	case "CANCELLING":
		return ErrStopping
	case "MISSING":
		return ErrNotFound
	case "DIVERGED":
		if s != nil {
			return fmt.Errorf("%w: it was at %q, and is now at %q", ErrDiverged, at(0), s.Wait.Label)
		}
	case "FOREIGN":
		return fmt.Errorf("%w: %s", ErrNotOwner, at(0))
	case "UNKNOWN":
		return fmt.Errorf("member %s: %w", at(0), ErrNotFound)
	case "INVALID":
		return refusal.Invalid(at(0), "%s", at(1))
	case "CHILD":
		if n := engine.Number(at(0)); s != nil && n >= 1 && n <= int64(len(s.Children)) {
			c := passenger{task: &s.Children[n-1]}
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

func (e *ChildError) Error() string { return "child " + e.ID + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *ChildError) Unwrap() error { return e.Err }
