package faults

import (
	"maps"
	"slices"
	"sync"
)

// ledger is what callers were told: by it a test knows what Redis must have.
type ledger struct {
	mu        sync.Mutex
	tasks     []string          // whose enqueue was acknowledged
	unknown   []string          // whose enqueue may or may not have had its effect
	refused   []string          // whose enqueue was refused
	settled   map[string]string // whose completion was acknowledged, and the result
	cancelled map[string]bool   // whose cancelling was acknowledged
	trouble   []error           // whatever else a caller was told
}

func newLedger() *ledger {
	return &ledger{settled: map[string]string{}, cancelled: map[string]bool{}}
}

func (l *ledger) acknowledge(ids ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = append(l.tasks, ids...)
}

func (l *ledger) complain(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = append(l.trouble, err)
}

func (l *ledger) settle(id, result string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled[id] = result
}

func (l *ledger) cancel(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled[id] = true
}

// copy is what it says now.
func (l *ledger) copy() *ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &ledger{tasks: slices.Clone(l.tasks), unknown: slices.Clone(l.unknown), refused: slices.Clone(l.refused),
		settled: maps.Clone(l.settled), cancelled: maps.Clone(l.cancelled), trouble: slices.Clone(l.trouble)}
}
