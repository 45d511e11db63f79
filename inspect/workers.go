package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Worker is a live worker: it has a lease in at least one partition.
type Worker struct {
	ID string
	// State is the state that the worker reported, "" if it reported none, as a client in another
	// language may do.
	State queue.WorkerState
	// StopAsked is the instant at which Queue.StopWorker requested a stop; zero if it did not.
	StopAsked time.Time
	Held      int       // number of tasks that it has claimed
	LeaseEnds time.Time // the end of its first lease

	// The worker reported the following fields. They are zero if it did not report them.

	Name, Host  string
	PID         int
	Concurrency int
	Queues      map[string]int // weights by queue
	Strict      []string       // queues in strict order, instead of Queues
	Kinds       []string       // kinds with a handler in this worker
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
	return jsonx.Encode(struct {
		Worker      string    `json:"worker"`
		State       string    `json:"state,omitempty"`
		StopAt      time.Time `json:"stop_at,omitzero"`
		Held        int       `json:"running"`
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
	byID := map[string]*Worker{}
	for p := range q.Partitions() {
		if err := addWorkers(ctx, q, p, byID); err != nil {
			return nil, refusal.Failed("workers", "", err)
		}
	}
	list := make([]Worker, 0, len(byID))
	for _, w := range byID {
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}

// addWorkers adds the workers of a partition. It skips a worker that it has seen, because several
// pages may contain the same worker.
func addWorkers(ctx context.Context, q *queue.Queue, p int, byID map[string]*Worker) error {
	seen := map[string]bool{}
	return q.Engine().Pages(ctx, p, "read_workers", 1, func(reply []any) error {
		now := engine.Instant(reply[0])
		for _, answer := range reply[2:] {
			row, err := engine.List(answer, nil, 3)
			if err != nil {
				return err
			}
			if engine.Instant(row[1]).Before(now) {
				continue // its lease has expired, but no sweep has removed it yet
			}
			id := engine.Text(row[0])
			if seen[id] {
				continue
			}
			seen[id] = true
			if byID[id] == nil {
				byID[id] = &Worker{ID: id}
			}
			byID[id].add(row)
		}
		return nil
	})
}

// add adds the row of the worker in a partition (lua/call/read_workers.lua).
func (w *Worker) add(row []any) {
	if end := engine.Instant(row[1]); w.LeaseEnds.IsZero() || end.Before(w.LeaseEnds) {
		w.LeaseEnds = end
	}
	w.Held += int(engine.Number(row[2]))
	for i := 3; i+1 < len(row); i += 2 {
		switch value := engine.Text(row[i+1]); engine.Text(row[i]) {
		case "state":
			if w.State != queue.WorkerDraining { // a worker reports that it drains to one partition after the other
				w.State = queue.WorkerState(value)
			}
		case "stop_at":
			w.StopAsked = engine.Instant(value)
		case "about":
			w.readDescription(value)
		}
	}
}

// readDescription decodes the description that the worker reported. It ignores a text that it cannot
// decode, because another client may send something else.
func (w *Worker) readDescription(about string) {
	var fields struct {
		Name, Host  string
		PID         int
		Concurrency int
		Queues      map[string]int
		Strict      []string
		Kinds       []string
		StartedAt   int64 `json:"started_at"`
	}
	if json.Unmarshal([]byte(about), &fields) != nil {
		return
	}
	w.Name, w.Host, w.PID, w.Concurrency = fields.Name, fields.Host, fields.PID, fields.Concurrency
	w.Queues, w.Strict, w.Kinds = fields.Queues, fields.Strict, fields.Kinds
	if fields.StartedAt > 0 {
		w.StartedAt = time.UnixMilli(fields.StartedAt)
	}
}
