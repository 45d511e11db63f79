package agentwait

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Recording holds everything that a replay of a live agent reads: its task, its journal, the wait
// that it is at, and its children. With it new code can be tried on an agent of another program,
// without that program's Redis. Its JSON is one object, which `curfew agent export` writes.
type Recording struct {
	Record *queue.Record // the agent
	ReadAt time.Time     // when it was read, on the clock of Redis

	state    *string
	entries  int64 // before the checkpoint
	numbered int64 // children without a name before the checkpoint
	journal  map[int64]string
	wait     *openWait // nil if the agent does not wait
	family   map[string]*queue.Record
}

// openWait is a wait that is not over.
type openWait struct {
	Entry   int64  `json:"entry"`
	Digest  string `json:"digest"`
	Label   text   `json:"label"`
	Members text   `json:"members"` // names, with spaces between them
}

// Export reads a live agent with its journal. It changes nothing. It returns [refusal.ErrNotFound] if
// there is no such task, and [refusal.ErrInvalid] if the task has ended, or has no journal because it
// never waited.
func Export(ctx context.Context, q *queue.Queue, agent string) (*Recording, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("export agent", "", err)
	}
	for range 5 {
		r, again, err := export(ctx, q, agent)
		if err != nil || !again {
			return r, refusal.Failed("export agent", agent, err)
		}
	}
	return nil, refusal.Failed("export agent", agent, errors.New("it changed during each of five attempts to read it: try again"))
}

// export makes several calls. again is set if the agent ran between them.
func export(ctx context.Context, q *queue.Queue, agent string) (r *Recording, again bool, err error) {
	p, err := names.PartitionIn(agent, q.Partitions())
	if err != nil {
		return nil, false, err
	}
	records, now, err := q.GetSome(ctx, p, []string{agent})
	if err != nil {
		return nil, false, err
	}
	record := records[0]
	switch {
	case record == nil:
		return nil, false, refusal.ErrNotFound
	case record.Status.Ended():
		return nil, false, refusal.Invalid("agent", "has ended: only live agents have a journal")
	case record.Fields["journal"] == "":
		return nil, false, refusal.Invalid("agent", "has no journal: it has not waited yet, so no replay of it can differ")
	}
	memory, err := claim.Of(q).Journal(ctx, agent)
	if err != nil {
		return nil, false, err
	}
	r = &Recording{Record: record, ReadAt: now, entries: memory.Entries, numbered: memory.Checkpoint.Children, journal: memory.Journal,
		family: map[string]*queue.Record{}}
	if memory.State != nil {
		state := string(memory.State)
		r.state = &state
	}
	if record.Status == queue.Waiting {
		words, err := q.Client().HMGet(ctx, q.Root(p)+":wait:"+agent, "entry", "digest", "label", "members").Result()
		if err != nil {
			return nil, false, err
		}
		word := func(i int) string { s, _ := words[i].(string); return s }
		entry, _ := strconv.ParseInt(word(0), 10, 64)
		r.wait = &openWait{entry, word(1), text(word(2)), text(word(3))}
	}
	ids, err := q.Client().LRange(ctx, q.Root(p)+":children:"+agent, 0, -1).Result()
	if err != nil {
		return nil, false, err
	}
	children, err := q.GetAll(ctx, ids)
	if err != nil {
		return nil, false, err
	}
	for _, child := range children {
		if child != nil {
			r.family[child.ID] = child
		}
	}
	after, err := q.Get(ctx, agent)
	if errors.Is(err, refusal.ErrNotFound) {
		return nil, true, nil
	}
	return r, err == nil && (after.Status != record.Status || after.Epoch != record.Epoch || after.Fields["waiting"] != record.Fields["waiting"]), err
}

// Replay replays the agent with the handler that a worker has for its kind, and ends the run where
// the recording ends: before the first call that the agent has not made yet. So steps do not run, and
// nothing is created, sent or written. Replay returns nil if the handler came to that point.
// Otherwise it returns a *DivergedError, or an error that says what the handler returned before.
//
// The worker's middleware runs too, and so does code of the handler outside of calls of this package.
func (r *Recording) Replay(ctx context.Context, w *worker.Worker) error {
	if r == nil || r.Record == nil || w == nil {
		return refusal.Invalid("recording", "must not be nil, nor the worker")
	}
	run := &rehearsal{Recording: r, last: r.lastEntry()}
	t := r.Record
	outcome, err := w.Rehearse(context.WithValue(ctx, rehearsalKey{}, run), queue.Claim{ID: t.ID, Queue: t.Queue, Kind: t.Kind, Epoch: t.Epoch,
		Payload: t.Payload, Headers: t.Headers, Priority: t.Priority, Retries: t.Retries, MaxRetries: t.MaxRetries, CreatedAt: t.CreatedAt,
		Deadline: t.Until, Journal: true, Now: r.ReadAt})
	switch {
	case err != nil:
		return err
	case run.diverged != nil:
		return run.diverged
	case run.arrived:
		return nil
	}
	return fmt.Errorf("the handler ended before call %d of agent %s, which is %s: %s", run.entry+1, t.ID, run.describeNext(), cmp.Or(outcome.Error, string(outcome.Verb)))
}

// lastEntry returns the number of the last call of the agent that the recording knows.
func (r *Recording) lastEntry() int64 {
	last := r.entries
	for n := range r.journal {
		last = max(last, n)
	}
	if r.wait != nil {
		last = max(last, r.wait.Entry)
	}
	return last
}

type rehearsalKey struct{}

// rehearsal is a replay of a recording.
type rehearsal struct {
	*Recording
	last     int64 // the number of the last call that the recording knows
	entry    int64 // of the last call of the replay
	arrived  bool  // the replay came to the end of the recording
	diverged *DivergedError
}

// end stores how the replay ended. err is the verdict on the run.
func (r *rehearsal) end(a *Agent, err error) {
	r.entry, r.arrived = a.entry, a.entry >= r.last
	errors.As(err, &r.diverged)
}

func (r *rehearsal) describeNext() string { return describeEntry(r.memory().Journal[r.entry+1]) }

// stillOpen is the Reason in the journal of a rehearsal for the wait that is not over.
const stillOpen = "open"

// missingEntry is the entry in a rehearsal of a call that has none.
const missingEntry = "missing"

// memory returns the journal, to which the open wait is added.
func (r *rehearsal) memory() *queue.Memory {
	m := &queue.Memory{Journal: maps.Clone(r.journal), Checkpoint: queue.Checkpoint{Children: r.numbered, Entries: r.entries}, Children: map[string]*queue.Record{}}
	if r.state != nil {
		m.State = []byte(*r.state)
	}
	if w := r.wait; w != nil {
		if m.Journal == nil {
			m.Journal = map[int64]string{}
		}
		m.Journal[w.Entry] = fmt.Sprintf("wait %s - 0 %s\n%s\n%s\n", stillOpen, w.Digest, w.Label, w.Members)
	}
	return m
}

// children returns records by the names of children.
func (r *rehearsal) children(names []string) map[string]*queue.Record {
	records := map[string]*queue.Record{}
	for _, name := range names {
		records[name] = r.family[r.Record.ID+"."+name]
	}
	return records
}

// tasks returns records by ids.
func (r *rehearsal) tasks(ids []string) []*queue.Record {
	records := make([]*queue.Record, len(ids))
	for i, id := range ids {
		records[i] = r.family[id]
	}
	return records
}

// compareUnsent compares the children that this run would create with those of the recording. The
// others are new, or were refused in the earlier run.
func (a *Agent) compareUnsent() error {
	records, err := a.readTasks(a.unsent)
	if err != nil {
		return err
	}
	for i, r := range records {
		if r == nil || isSignal(nameOf(r.ID)) {
			continue
		}
		if was, now := childDifference(r, &a.unsent[i]); was != now {
			return a.diverged(was, now)
		}
	}
	a.unsent = nil
	return nil
}

// recordingFormat is the version of the JSON of a Recording.
const recordingFormat = 1

// text is a string that is written to JSON as it is if it is UTF-8, and otherwise as base64.
type text string

func (t text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string][]byte{"base64": []byte(t)})
}

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var binary struct {
			Base64 []byte `json:"base64"`
		}
		err := json.Unmarshal(b, &binary)
		*t = text(binary.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}

type (
	recordingLine struct {
		Type     string         `json:"type"` // agent
		Format   int            `json:"format"`
		ReadAt   int64          `json:"read_at"`
		Task     taskLine       `json:"task"`
		State    *text          `json:"state,omitempty"`
		Numbered int64          `json:"children_before,omitempty"`
		Before   int64          `json:"entries_before,omitempty"`
		Journal  map[int64]text `json:"journal"`
		Wait     *openWait      `json:"wait,omitempty"`
		Children []taskLine     `json:"child_tasks,omitempty"`
	}
	taskLine struct {
		ID      string          `json:"id"`
		Payload text            `json:"payload,omitempty"`
		Fields  map[string]text `json:"fields"`
	}
)

func lineOf(r *queue.Record) taskLine {
	line := taskLine{ID: r.ID, Payload: text(r.Payload), Fields: make(map[string]text, len(r.Fields))}
	for name, value := range r.Fields {
		line.Fields[name] = text(value)
	}
	return line
}

func (l *taskLine) record() (*queue.Record, error) {
	words := []any{"0", string(l.Payload)}
	for name, value := range l.Fields {
		words = append(words, name, string(value))
	}
	if _, err := queue.PartitionOf(l.ID); err != nil {
		return nil, err
	}
	return queue.ReadRecord(l.ID, words)
}

// MarshalJSON encodes the recording as one object.
func (r *Recording) MarshalJSON() ([]byte, error) {
	line := recordingLine{Type: "agent", Format: recordingFormat, ReadAt: r.ReadAt.UnixMilli(), Task: lineOf(r.Record), State: (*text)(r.state),
		Numbered: r.numbered, Before: r.entries, Journal: map[int64]text{}, Wait: r.wait}
	for n, entry := range r.journal {
		line.Journal[n] = text(entry)
	}
	for _, id := range slices.Sorted(maps.Keys(r.family)) {
		line.Children = append(line.Children, lineOf(r.family[id]))
	}
	return json.Marshal(line)
}

// UnmarshalJSON decodes a recording.
func (r *Recording) UnmarshalJSON(b []byte) error {
	var line recordingLine
	if err := json.Unmarshal(b, &line); err != nil {
		return jsonx.Plain(err)
	}
	switch {
	case line.Type != "agent":
		return refusal.Invalid("type", "must be agent: `curfew agent export` writes such lines")
	case line.Format != recordingFormat:
		return refusal.Invalid("format", "is %d, and this program reads %d: export the agents again with the command of its release", line.Format, recordingFormat)
	}
	task, err := line.Task.record()
	if err != nil {
		return err
	}
	*r = Recording{Record: task, ReadAt: time.UnixMilli(line.ReadAt), state: (*string)(line.State), entries: line.Before, numbered: line.Numbered,
		journal: map[int64]string{}, wait: line.Wait, family: map[string]*queue.Record{}}
	for n, entry := range line.Journal {
		r.journal[n] = string(entry)
	}
	for i := range line.Children {
		child, err := line.Children[i].record()
		if err != nil {
			return err
		}
		r.family[child.ID] = child
	}
	return nil
}

// ReadRecordings reads recordings, one object a line, as `curfew agent export` writes them.
func ReadRecordings(in io.Reader) ([]*Recording, error) {
	var all []*Recording
	lines := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			r := &Recording{}
			if err := json.Unmarshal(line, r); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
			all = append(all, r)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
	}
}
