package stages

import (
	"maps"
	"slices"
	"sync"

	"github.com/curfew-dev/curfew/queue"
)

// Ledger is what callers were told: by it a test knows what Redis must have. It is safe
// for concurrent use by its methods; the fields are read from a Copy.
type Ledger struct {
	mu      sync.Mutex
	Tasks   []string         // whose enqueue was acknowledged
	Unknown []string         // whose enqueue may or may not have had its effect
	Refused []string         // whose enqueue was refused
	Told    map[string][]End // by task: the ends that callers were told to have caused
	Trouble []error          // whatever else a caller was told
}

// End is how a task ended: the status, and the result if it completed, or the reason or
// error if it did not.
type End struct {
	Status queue.Status
	Note   string
}

// EndOf is the end that a record tells.
func EndOf(r *queue.Record) End {
	if r.Status == queue.Completed {
		return End{r.Status, string(r.Result)}
	}
	return End{r.Status, r.Error}
}

// Acknowledge notes tasks that were accepted.
func (l *Ledger) Acknowledge(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Tasks = append(l.Tasks, ids...)
}

// Doubt notes a task of which nobody was told whether it was accepted.
func (l *Ledger) Doubt(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Unknown = append(l.Unknown, id)
}

// Refuse notes a task that was refused.
func (l *Ledger) Refuse(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Refused = append(l.Refused, id)
}

// Tell notes that a caller was told that it ended a task so.
func (l *Ledger) Tell(id string, end End) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Told == nil {
		l.Told = map[string][]End{}
	}
	l.Told[id] = append(l.Told[id], end)
}

// Complain notes an error that a caller was told, beyond those on a task.
func (l *Ledger) Complain(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Trouble = append(l.Trouble, err)
}

// Copy is what it says now.
func (l *Ledger) Copy() *Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := maps.Clone(l.Told)
	for id, ends := range told {
		told[id] = slices.Clone(ends)
	}
	return &Ledger{Tasks: slices.Clone(l.Tasks), Unknown: slices.Clone(l.Unknown), Refused: slices.Clone(l.Refused),
		Told: told, Trouble: slices.Clone(l.Trouble)}
}

// Count tells of how many tasks callers were told that they ended so.
func (l *Ledger) Count(status queue.Status) (n int) {
	for id := range l.Told {
		if l.Ended(id, status) {
			n++
		}
	}
	return n
}

// Ended tells whether a caller was told that it ended a task so.
func (l *Ledger) Ended(id string, status queue.Status) bool {
	return slices.ContainsFunc(l.Told[id], func(end End) bool { return end.Status == status })
}
