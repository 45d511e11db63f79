package claim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// maxRecalled is the greatest number of members whose records are read together with the journal. A
// larger wait is read with Children, so that one reply stays small.
const maxRecalled = 100

// Recall reads an agent's journal, and the records of the members of its newest ended wait: the
// replay needs their results first. It reads them only if the wait had at most 100 members, and up
// to about 512 KiB. Children reads the rest.
func (a Attempts) Recall(ctx context.Context, agent string) (*queue.Memory, error) {
	if err := a.q.Ready(ctx); err != nil {
		return nil, refusal.Failed("recall", "", err)
	}
	m := &queue.Memory{Journal: map[int64]string{}}
	var err error
	m.Children, err = a.recall(ctx, agent, maxRecalled, nil, m)
	if err != nil {
		return nil, refusal.Failed("recall", agent, err)
	}
	return m, nil
}

// Journal is Recall without the records of members: Memory.Children is empty.
func (a Attempts) Journal(ctx context.Context, agent string) (*queue.Memory, error) {
	if err := a.q.Ready(ctx); err != nil {
		return nil, refusal.Failed("journal", "", err)
	}
	m := &queue.Memory{Journal: map[int64]string{}, Children: map[string]*queue.Record{}}
	if _, err := a.recall(ctx, agent, 0, nil, m); err != nil {
		return nil, refusal.Failed("journal", agent, err)
	}
	return m, nil
}

// Children reads the records of an agent's children, up to 500 in a round trip. names are the last
// parts of their ids, and the keys of the map. A child that does not exist is nil in the map.
func (a Attempts) Children(ctx context.Context, agent string, names []string) (map[string]*queue.Record, error) {
	if err := a.q.Ready(ctx); err != nil {
		return nil, refusal.Failed("children", "", err)
	}
	records := make(map[string]*queue.Record, len(names))
	for len(names) > 0 {
		n := min(len(names), engine.MaxTasks)
		page, err := a.recall(ctx, agent, "", names[:n], nil)
		// A reply is bounded in bytes, so it can hold fewer records than names. The next call asks
		// for the rest.
		rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, done := page[name]; return done })
		// Without progress the loop would not end: a reply is not trusted.
		if err == nil && len(rest) == len(names) {
			err = fmt.Errorf("no answer for child %s", names[0])
		}
		if err != nil {
			return nil, refusal.Failed("recall", agent, err)
		}
		maps.Copy(records, page)
		names = rest
	}
	return records, nil
}

// Results reads children of an agent by their ids, up to 500 in a round trip. The records are in the order of ids; an
// id that is given twice is in both places. If a task is not a child of the agent, Results returns
// [refusal.ErrNotOwner]. If one does not exist, it returns [refusal.ErrNotFound]. In both cases it returns no records.
// A task that has not ended has neither result nor error.
func (a Attempts) Results(ctx context.Context, agent string, ids []string) ([]*queue.Record, error) {
	if err := names.CheckOwner(agent, ids); err != nil {
		return nil, refusal.Failed("results", agent, err)
	}
	last := make([]string, len(ids))
	for i, id := range ids {
		last[i] = id[len(agent)+1:]
	}
	distinct := slices.Clone(last)
	slices.Sort(distinct)
	children, err := a.Children(ctx, agent, slices.Compact(distinct))
	if err != nil {
		return nil, err
	}
	records := make([]*queue.Record, len(ids))
	for i, name := range last {
		if records[i] = children[name]; records[i] == nil {
			return nil, refusal.Failed("results", ids[i], refusal.ErrNotFound)
		}
	}
	return records, nil
}

func (a Attempts) recall(ctx context.Context, agent string, maxMembers any, childNames []string, memory *queue.Memory) (map[string]*queue.Record, error) {
	p, err := names.PartitionIn(agent, a.q.Partitions())
	if err != nil {
		return nil, err
	}
	args := []any{agent, maxMembers}
	for _, name := range childNames {
		args = append(args, name)
	}
	reply, err := a.q.Engine().Call(ctx, p, "recall", args...)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return nil, err
	}
	if memory != nil {
		if err := readMemory(memory, answers[1]); err != nil {
			return nil, err
		}
	}
	children := map[string]*queue.Record{}
	for _, answer := range answers[2:] {
		words, err := engine.List(answer, nil, 1)
		if err != nil {
			return nil, err
		}
		child := engine.Text(words[0])
		if len(words) == 1 {
			children[child] = nil
			continue
		}
		fields := append([]any{words[1], ""}, words[2:]...) // in the order of read.lua, which ReadRecord expects
		if children[child], err = queue.ReadRecord(agent+"."+child, fields); err != nil {
			return nil, err
		}
	}
	return children, nil
}

func readMemory(m *queue.Memory, journal any) error {
	words, err := engine.Elements(journal, nil)
	if err != nil || len(words)%2 != 0 {
		return engine.Unexpected("journal", journal)
	}
	for i := 0; i < len(words); i += 2 {
		value := engine.Text(words[i+1])
		switch name := engine.Text(words[i]); name {
		case "state":
			m.State = []byte(value)
		case "children":
			m.Checkpoint.Children = engine.Number(value)
		case "entries":
			m.Entries = engine.Number(value)
		default:
			if n, err := strconv.ParseInt(name, 10, 64); err == nil {
				m.Journal[n] = value
			}
		}
	}
	return nil
}
