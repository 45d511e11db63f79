package harness

import (
	"maps"
	"slices"
	"sync"

	"github.com/curfew-dev/curfew/queue"
)

// Ledger records the replies that callers got, so that a test knows what Redis must hold. Its
// methods are safe for concurrent use. Read the fields from a Copy.
type Ledger struct {
	mu      sync.Mutex
	Tasks   []string         // tasks whose enqueue was acknowledged
	Unknown []string         // tasks whose enqueue had an unknown result
	Refused []string         // tasks whose enqueue was refused
	Told    map[string][]End // by task: the ends that accepted calls caused
	Trouble []error          // other errors that callers got
}

// End is how a task ended: the status, and the result if it completed, or the reason or
// error if it did not.
type End struct {
	Status queue.Status
	Note   string
}

// EndOf returns the end of a record.
func EndOf(r *queue.Record) End {
	if r.Status == queue.Completed {
		return End{r.Status, string(r.Result)}
	}
	return End{r.Status, r.Error}
}

// Acknowledge records tasks that were accepted.
func (l *Ledger) Acknowledge(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Tasks = append(l.Tasks, ids...)
}

// Doubt records a task whose enqueue got no reply.
func (l *Ledger) Doubt(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Unknown = append(l.Unknown, id)
}

// Refuse records a task that was refused.
func (l *Ledger) Refuse(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Refused = append(l.Refused, id)
}

// Tell records that a reply said that the call ended a task like this.
func (l *Ledger) Tell(id string, end End) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Told == nil {
		l.Told = map[string][]End{}
	}
	l.Told[id] = append(l.Told[id], end)
}

// Complain records an error that a caller got and that is not about one task.
func (l *Ledger) Complain(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Trouble = append(l.Trouble, err)
}

// Copy returns a copy of the ledger.
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

// Count returns the number of tasks that have an end with a status in Told.
func (l *Ledger) Count(status queue.Status) (n int) {
	for id := range l.Told {
		if l.Ended(id, status) {
			n++
		}
	}
	return n
}

// Ended reports whether a task has an end with a status in Told.
func (l *Ledger) Ended(id string, status queue.Status) bool {
	return slices.ContainsFunc(l.Told[id], func(end End) bool { return end.Status == status })
}
