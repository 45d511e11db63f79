package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Resume ends the wait of a node: of an executor wait, or of an echo with the input suspend. value,
// as JSON, is the result of the node; the members of an object are its output parameters. node is
// the key of the node. For a node in a part of the run it is the key of the part, a slash, and the
// key of the node: review/approval.
//
// Resume returns [refusal.ErrNotFound] if the run or node does not exist, [refusal.ErrInvalid] if
// the node never waits for a signal or has not begun, and [refusal.ErrConflict] if its wait has
// already ended, for example by another call of Resume.
func Resume(ctx context.Context, q *queue.Queue, run, node string, value any) error {
	if err := q.Ready(ctx); err != nil {
		return refusal.Failed("resume a node", "", err)
	}
	return refusal.Failed("resume a node", run, resume(ctx, q, run, node, value))
}

func resume(ctx context.Context, q *queue.Queue, run, node string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return refusal.Invalid("value", "cannot be written as JSON: %v", jsonx.Plain(err))
	}
	n, err := find(ctx, q, run, node)
	switch {
	case err != nil:
		return err
	case n.Kind != kindWait && n.Kind != "signal" && !n.mayWait():
		return refusal.Invalid("node", "%s does not wait for a signal: its kind is %s", node, n.Kind)
	case n.Phase == Created || n.Task == "" && !n.Phase.over():
		return refusal.Invalid("node", "%s does not wait yet: %s", node, n.startCondition())
	case n.Phase.over():
		return describedError(refusal.ErrConflict, "the node %s does not wait any more: it is %s", node, n.Phase)
	}
	r, err := q.Resolve(ctx, n.Task, text)
	if err == nil && !r.Done {
		return describedError(refusal.ErrConflict, "the node %s does not wait any more: its task is %s", node, r.Status)
	}
	return err
}

// mayWait reports whether a node that has not begun is an echo, which waits if its inputs say so.
func (n *Node) mayWait() bool { return n.Kind == "" && n.Phase == Created }

// startCondition describes what must happen before a node begins.
func (n *Node) startCondition() string {
	if len(n.WaitsFor) == 0 {
		return "resume it when a worker has continued the run"
	}
	return "it waits for " + strings.Join(n.WaitsFor, ", ")
}

// find returns a node of a run or of a part of it.
func find(ctx context.Context, q *queue.Queue, run, path string) (*Node, error) {
	r, err := Read(ctx, q, run, false)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, n := range r.Nodes {
		if n.Key == path {
			return n, nil
		}
		keys = append(keys, n.Key)
		if rest, inside := strings.CutPrefix(path, n.Key+"/"); inside && strings.HasPrefix(n.Kind, kindOf("")) && n.Task != "" {
			inner, err := find(ctx, q, n.Task, rest)
			if err == nil {
				return inner, nil
			}
			return nil, fmt.Errorf("in %s: %w", n.Key, err)
		}
	}
	advice := names.Hint(path, keys)
	if advice == "" && len(keys) <= 20 {
		advice = ": there is " + strings.Join(keys, ", ")
	}
	return nil, describedError(refusal.ErrNotFound, "the run has no node %s%s", refusal.Clip(path), advice)
}

// describedError returns an error with this text that matches a sentinel of package refusal.
func describedError(sentinel error, format string, args ...any) error {
	return &sentinelError{fmt.Sprintf(format, args...), sentinel}
}

type sentinelError struct {
	text     string
	sentinel error
}

func (e *sentinelError) Error() string { return e.text }

func (e *sentinelError) Is(target error) bool { return target == e.sentinel }
