package claim

import (
	"context"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Note is an addition to an agent's journal. A Checkpoint replaces all entries so far.
type Note struct {
	Checkpoint *queue.Checkpoint
	Entries    []Entry
}

// Entry records the result of a step, or a random value, because a replay must get the same value
// again.
type Entry struct {
	Number int64
	Text   []byte
}

// Remember adds a note to an agent's journal, for its replay. If it returns [refusal.ErrNotHeld],
// [refusal.ErrStopping], [refusal.ErrNotFound], or [refusal.ErrInvalid] (the note is too large), nothing was written.
func (a Attempts) Remember(ctx context.Context, agent string, epoch int64, worker string, n Note) error {
	if err := a.q.Ready(ctx); err != nil {
		return refusal.Failed("remember", "", err)
	}
	p, err := names.PartitionIn(agent, a.q.Partitions())
	if err != nil {
		return refusal.Failed("remember", agent, err)
	}
	args, err := n.args([]any{agent, epoch, worker}, a.q.MaxBytes())
	if err != nil {
		return refusal.Failed("remember", agent, err)
	}
	words, err := engine.Words(a.q.Engine().Call(ctx, p, "remember", args...))
	if err == nil && engine.Text(words[0]) != "OK" {
		err = refusedAgent(engine.Text(words[0]), words[1:], nil)
	}
	return refusal.Failed("remember", agent, err)
}

func (n *Note) args(args []any, maxBytes int) ([]any, error) {
	if c := n.Checkpoint; c != nil {
		if len(c.State) > maxBytes {
			return nil, refusal.Invalid("checkpoint", "has %d bytes, the limit is %d: store it elsewhere and keep a reference, or raise Config.MaxBytes", len(c.State), maxBytes)
		}
		args = append(args, 3, "state", c.State, "children", c.Children, "entries", c.Entries)
	} else {
		args = append(args, 0)
	}
	args = append(args, len(n.Entries))
	for _, e := range n.Entries {
		if len(e.Text) > maxBytes+1024 {
			return nil, refusal.Invalid("entry", "has %d bytes, the limit is %d: store it elsewhere and remember a reference", len(e.Text), maxBytes)
		}
		args = append(args, e.Number, e.Text)
	}
	return args, nil
}
