package queue

import "context"

// Note is what an agent remembers. A Checkpoint takes the place of all entries so far.
type Note struct {
	Checkpoint *Checkpoint
	Entries    []Entry
}

// Checkpoint is where an agent's replay begins.
type Checkpoint struct {
	State    []byte
	Children int64 // how many it had made
	Entries  int64 // the number of the last entry before it
}

// Entry is something that an agent did or drew, and must find again in its replay.
type Entry struct {
	Number int64
	Text   []byte
}

// Remember writes down what an agent must find again in its replay. It returns
// [ErrNotHeld], [ErrStopping], [ErrNotFound], and [ErrInvalid] for what is too large; then
// nothing was written.
func (q *Queue) Remember(ctx context.Context, agent string, epoch int64, worker string, n Note) error {
	p, err := partitionIn(agent, q.config.Partitions)
	if err != nil {
		return failed("remember", agent, err)
	}
	args, err := n.args([]any{agent, epoch, worker}, q.config.MaxBytes)
	if err != nil {
		return failed("remember", agent, err)
	}
	reply, err := q.call(ctx, p, "remember", args...)
	words, err := list(reply, err, 1)
	if err == nil && text(words[0]) != "OK" {
		err = refusedAgent(text(words[0]), words[1:], nil)
	}
	return failed("remember", agent, err)
}

func (n *Note) args(args []any, maxBytes int) ([]any, error) {
	if c := n.Checkpoint; c != nil {
		if len(c.State) > maxBytes {
			return nil, invalid("checkpoint", "has %d bytes, the limit is %d: store it elsewhere and keep a reference, or raise Config.MaxBytes", len(c.State), maxBytes)
		}
		args = append(args, 3, "state", c.State, "children", c.Children, "entries", c.Entries)
	} else {
		args = append(args, 0)
	}
	args = append(args, len(n.Entries))
	for _, e := range n.Entries {
		if len(e.Text) > maxBytes+1024 {
			return nil, invalid("entry", "has %d bytes, the limit is %d: store it elsewhere and remember a reference", len(e.Text), maxBytes)
		}
		args = append(args, e.Number, e.Text)
	}
	return args, nil
}
