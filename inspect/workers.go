package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Worker is a live worker: it has a lease in at least one partition.
type Worker struct {
	ID string
	// State is the state that the worker reported. It is "" if the worker reported none, as a client
	// in another language may do.
	State queue.WorkerState
	// StopAsked is when Queue.StopWorker requested it to stop; zero if it did not.
	StopAsked time.Time
	Held      int       // number of tasks that it has claimed
	LeaseEnds time.Time // when the first of its leases ends

	// The worker reported the following fields. They are zero if it did not.

	Name, Host  string
	PID         int
	Concurrency int
	Queues      map[string]int // weights by queue
	Strict      []string       // queues in strict order, instead of Queues
	Kinds       []string       // kinds that it has handlers for
	StartedAt   time.Time
}

// MarshalJSON encodes the worker. Its queues are a list of objects with queue and weight; the weight is 0 if the order is
// strict.
func (w Worker) MarshalJSON() ([]byte, error) {
	type line struct {
		Queue  string `json:"queue"`
		Weight int    `json:"weight"`
	}
	queues := []line{}
	for _, name := range slices.Sorted(maps.Keys(w.Queues)) {
		queues = append(queues, line{name, w.Queues[name]})
	}
	for _, name := range w.Strict {
		queues = append(queues, line{name, 0})
	}
	return jsonline.Encode(struct {
		Worker      string    `json:"worker"`
		State       string    `json:"state,omitempty"`
		StopAt      time.Time `json:"stop_at,omitzero"`
		Held        int       `json:"held"`
		LeaseEnds   time.Time `json:"lease_ends_at"`
		Name        string    `json:"name,omitempty"`
		Host        string    `json:"host,omitempty"`
		PID         int       `json:"pid,omitempty"`
		Concurrency int       `json:"concurrency,omitempty"`
		Queues      []line    `json:"queues"`
		Kinds       []string  `json:"kinds,omitempty"`
		StartedAt   time.Time `json:"started_at,omitzero"`
	}{w.ID, string(w.State), w.StopAsked, w.Held, w.LeaseEnds, w.Name, w.Host, w.PID, w.Concurrency, queues, w.Kinds, w.StartedAt}), nil
}

// Workers returns the live workers, sorted by id. A worker that starts or stops while Workers reads may be missing.
func Workers(ctx context.Context, q *queue.Queue) ([]Worker, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("workers", "", err)
	}
	all := map[string]*Worker{}
	for p := range q.Partitions() {
		if err := addWorkers(ctx, q, p, all); err != nil {
			return nil, refusal.Failed("workers", "", err)
		}
	}
	list := make([]Worker, 0, len(all))
	for _, w := range all {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// addWorkers adds the workers of a partition. Several pages may have the same worker.
func addWorkers(ctx context.Context, q *queue.Queue, p int, all map[string]*Worker) error {
	told := map[string]bool{}
	return q.Engine().Pages(ctx, p, "read_workers", 1, func(reply []any) error {
		now := engine.Instant(reply[0])
		for _, answer := range reply[2:] {
			row, err := engine.List(answer, nil, 3)
			if err != nil {
				return err
			}
			if engine.Instant(row[1]).Before(now) {
				continue // it is dead, and no sweep has removed it yet
			}
			id := engine.Text(row[0])
			if told[id] {
				continue
			}
			told[id] = true
			if all[id] == nil {
				all[id] = &Worker{ID: id}
			}
			all[id].add(row)
		}
		return nil
	})
}

// add adds the row that a partition has for the worker (lua/call/read_workers.lua).
func (w *Worker) add(row []any) {
	if ends := engine.Instant(row[1]); w.LeaseEnds.IsZero() || ends.Before(w.LeaseEnds) {
		w.LeaseEnds = ends
	}
	w.Held += int(engine.Number(row[2]))
	for i := 3; i+1 < len(row); i += 2 {
		switch value := engine.Text(row[i+1]); engine.Text(row[i]) {
		case "state":
			if w.State != queue.WorkerDraining { // a worker reports it to one partition after the other
				w.State = queue.WorkerState(value)
			}
		case "stop_at":
			w.StopAsked = engine.Instant(value)
		case "about":
			w.read(value)
		}
	}
}

// read decodes what the worker reported. It ignores text that it cannot decode, as another client may send
// something else.
func (w *Worker) read(about string) {
	var said struct {
		Name, Host  string
		PID         int
		Concurrency int
		Queues      map[string]int
		Strict      []string
		Kinds       []string
		StartedAt   int64 `json:"started_at"`
	}
	if json.Unmarshal([]byte(about), &said) != nil {
		return
	}
	w.Name, w.Host, w.PID, w.Concurrency = said.Name, said.Host, said.PID, said.Concurrency
	w.Queues, w.Strict, w.Kinds = said.Queues, said.Strict, said.Kinds
	if said.StartedAt > 0 {
		w.StartedAt = time.UnixMilli(said.StartedAt)
	}
}
