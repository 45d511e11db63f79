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

// Memory is what an agent knows when it runs again.
type Memory struct {
	Checkpoint
	Journal  map[int64]string   // entries since the checkpoint, by number
	Children map[string]*Record // of the newest wait, by the last part of their ids; perhaps none
}

// recalled is how many members of the newest wait come along with the journal.
const recalled = 100

// Recall reads an agent's journal, and the members of its newest wait if they are 100 at
// the most.
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

// Children reads how children of an agent stand, by the last parts of their ids, 500 a
// round trip. One that is not there is nil.
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
		// Of large results the script tells of some at a time, in the order asked.
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, told := some[name]; return told })
	}
	return all, nil
}

// Results reads tasks of an agent by their ids, in the order given, one that is given twice in both places, 500 a round
// trip. All of them must be children of the agent: if one is not it returns [refusal.ErrNotOwner], if one is not there
// [refusal.ErrNotFound], and nothing of the others. A task that has not ended has neither result nor error.
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
		fields := append([]any{words[1], ""}, words[2:]...) // as read.lua has them
		if children[name], err = readRecord(agent+"."+name, fields); err != nil {
			return nil, err
		}
	}
	return children, nil
}

func (m *Memory) read(journal any) error {
	words, err := engine.Elements(journal, nil)
	if err != nil || len(words)%2 != 0 {
		return fmt.Errorf("unexpected journal %.100v", journal)
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

// WaitOutcome is how a wait ended, as an agent's journal keeps it.
type WaitOutcome struct {
	Reason  string // satisfied, impossible or timed_out
	Winner  string // the name of the member whose end decided; "" for none
	At      time.Time
	Digest  string
	Label   string
	Members []string // names, in the order of the call
	Settled []string // names of those that had ended, in the order they did
}

// ReadWaitOutcome reads an entry of a journal; ok is false for one of another kind.
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
