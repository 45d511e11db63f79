package lines

import (
	"maps"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/inspect"
)

// Served is a queue that a worker serves.
type Served struct {
	Queue  string `json:"queue"`
	Weight int    `json:"weight,omitempty"` // 0: in strict order
}

// Worker is a worker.
type Worker struct {
	Worker      string    `json:"worker"`
	State       string    `json:"state,omitempty"`
	Running     int       `json:"running"`
	Concurrency int       `json:"concurrency,omitempty"`
	Queues      []Served  `json:"queues,omitempty"`
	Kinds       []string  `json:"kinds,omitempty"`
	Name        string    `json:"name,omitempty"`
	Host        string    `json:"host,omitempty"`
	PID         int       `json:"pid,omitempty"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	StopAt      time.Time `json:"stop_at,omitzero"`
	LeaseEndsAt time.Time `json:"lease_ends_at"`
}

// OfWorker returns the line of a worker.
func OfWorker(w inspect.Worker) Worker {
	l := Worker{Worker: w.ID, State: string(w.State), Running: w.Held, Concurrency: w.Concurrency, Kinds: w.Kinds, Name: w.Name, Host: w.Host,
		PID: w.PID, StartedAt: w.StartedAt, StopAt: w.StopAsked, LeaseEndsAt: w.LeaseEnds}
	for _, name := range w.Strict {
		l.Queues = append(l.Queues, Served{Queue: name})
	}
	for _, name := range slices.Sorted(maps.Keys(w.Queues)) {
		l.Queues = append(l.Queues, Served{name, w.Queues[name]})
	}
	return l
}
