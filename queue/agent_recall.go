package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Memory is what Recall returns for an agent that runs again.
type Memory struct {
	Checkpoint
	Journal  map[int64]string   // entries since the checkpoint, by number
	Children map[string]*Record // members of the newest wait that is over, by the last parts of their ids: see Recall
}

// recalled is the greatest number of members of a wait whose records are read together with the journal.
const recalled = 100

// Recall reads an agent's journal. If the newest wait that is over had at most 100 members, Recall
// also reads their records, up to about 512 KiB of them. Children reads the others.
func (a Attempts) Recall(ctx context.Context, agent string) (*Memory, error) {
	if err := a.q.ready(ctx); err != nil {
		return nil, refusal.Failed("recall", "", err)
	}
	m := &Memory{Journal: map[int64]string{}}
	var err error
	m.Children, err = a.recall(ctx, agent, recalled, nil, m)
	if err != nil {
		return nil, refusal.Failed("recall", agent, err)
	}
	return m, nil
}

// Journal is Recall without the records of members: Memory.Children is empty.
func (a Attempts) Journal(ctx context.Context, agent string) (*Memory, error) {
	if err := a.q.ready(ctx); err != nil {
		return nil, refusal.Failed("journal", "", err)
	}
	m := &Memory{Journal: map[int64]string{}, Children: map[string]*Record{}}
	if _, err := a.recall(ctx, agent, 0, nil, m); err != nil {
		return nil, refusal.Failed("journal", agent, err)
	}
	return m, nil
}

// Children reads the records of an agent's children by the last parts of their ids, up to 500
// in a round trip. A child that does not exist is nil in the map.
func (a Attempts) Children(ctx context.Context, agent string, names []string) (map[string]*Record, error) {
	if err := a.q.ready(ctx); err != nil {
		return nil, refusal.Failed("children", "", err)
	}
	all := make(map[string]*Record, len(names))
	for len(names) > 0 {
		n := min(len(names), maxList)
		some, err := a.recall(ctx, agent, "", names[:n], nil)
		if err == nil && len(some) == 0 {
			err = fmt.Errorf("no answer for child %s", names[0])
		}
		if err != nil {
			return nil, refusal.Failed("recall", agent, err)
		}
		maps.Copy(all, some)
		// A reply is bounded in bytes: it holds the first of the names, and the next call asks for the others.
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, read := some[name]; return read })
	}
	return all, nil
}

// Results reads children of an agent by their ids, up to 500 in a round trip. The records are in the order of ids; an
// id that is given twice is in both places. If a task is not a child of the agent, Results returns
// [refusal.ErrNotOwner]. If one does not exist, it returns [refusal.ErrNotFound]. In both cases it returns no records.
// A task that has not ended has neither result nor error.
func (a Attempts) Results(ctx context.Context, agent string, ids []string) ([]*Record, error) {
	if err := owned(agent, ids); err != nil {
		return nil, refusal.Failed("results", agent, err)
	}
	last := make([]string, len(ids))
	for i, id := range ids {
		last[i] = id[len(agent)+1:]
	}
	distinct := slices.Clone(last)
	slices.Sort(distinct)
	found, err := a.Children(ctx, agent, slices.Compact(distinct))
	if err != nil {
		return nil, err
	}
	records := make([]*Record, len(ids))
	for i, name := range last {
		if records[i] = found[name]; records[i] == nil {
			return nil, refusal.Failed("results", ids[i], refusal.ErrNotFound)
		}
	}
	return records, nil
}

func (a Attempts) recall(ctx context.Context, agent string, most any, asked []string, into *Memory) (map[string]*Record, error) {
	p, err := names.PartitionIn(agent, a.q.Partitions())
	if err != nil {
		return nil, err
	}
	args := []any{agent, most}
	for _, name := range asked {
		args = append(args, name)
	}
	reply, err := a.q.engine.Call(ctx, p, "recall", args...)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return nil, err
	}
	if into != nil {
		if err := into.read(answers[1]); err != nil {
			return nil, err
		}
	}
	children := map[string]*Record{}
	for _, answer := range answers[2:] {
		words, err := engine.List(answer, nil, 1)
		if err != nil {
			return nil, err
		}
		name := engine.Text(words[0])
		if len(words) == 1 {
			children[name] = nil
			continue
		}
		fields := append([]any{words[1], ""}, words[2:]...) // the order that read.lua has
		if children[name], err = ReadRecord(agent+"."+name, fields); err != nil {
			return nil, err
		}
	}
	return children, nil
}

func (m *Memory) read(journal any) error {
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

// WaitOutcome is how a wait ended, as recorded in the agent's journal.
type WaitOutcome struct {
	Reason  string // satisfied, impossible or timed_out
	Winner  string // the name of the member whose end decided; "" for none
	At      time.Time
	Digest  string
	Label   string
	Members []string // names, in the order of the call
	Settled []string // names of the members that had ended, in the order in which they ended
}

// ReadWaitOutcome parses an entry of a journal. ok is false if the entry is not the outcome of a wait.
func ReadWaitOutcome(entry string) (o WaitOutcome, ok bool) {
	lines := strings.Split(entry, "\n")
	words := strings.Fields(lines[0])
	if len(lines) != 4 || len(words) != 5 || words[0] != "wait" {
		return o, false
	}
	o = WaitOutcome{Reason: words[1], Winner: words[2], At: engine.Instant(words[3]), Digest: words[4],
		Label: lines[1], Members: strings.Fields(lines[2]), Settled: strings.Fields(lines[3])}
	if o.Winner == "-" {
		o.Winner = ""
	}
	return o, true
}
