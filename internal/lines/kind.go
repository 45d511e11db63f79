package lines

import (
	"context"
	"maps"
	"math"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
)

// Stored are the defaults of a kind as they are stored.
type Stored map[string]string

// MarshalJSON encodes numbers as numbers.
func (s Stored) MarshalJSON() ([]byte, error) {
	var o jsonx.Object
	o.Fields(s)
	return o.Close(), nil
}

// Ended counts the ends of a kind's tasks.
type Ended struct {
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	TimedOut  int64 `json:"timed_out"`
}

func (e *Ended) add(ends []inspect.Ends) {
	for _, end := range ends {
		switch end.Status {
		case queue.Completed:
			e.Completed += end.Count
		case queue.Failed:
			e.Failed += end.Count
		case queue.Cancelled:
			e.Cancelled += end.Count
		}
		if end.Reason == queue.ReasonTimeout {
			e.TimedOut += end.Count
		}
	}
}

// KindQueue counts the ends of a kind's tasks in one queue.
type KindQueue struct {
	Queue string `json:"queue"`
	Ended
}

// Kind is a kind.
type Kind struct {
	Kind string `json:"kind"`
	Ended
	// The bounds of durations are null if no task counts, or if they are above the largest bucket.
	P50      *int64      `json:"p50_ms"`
	P99      *int64      `json:"p99_ms"`
	Queues   []KindQueue `json:"queues"`
	Defaults Stored      `json:"fields"`
	Workers  int         `json:"workers"` // live workers that publish this kind

	Duration inspect.Histogram     `json:"-"`
	Figures  []inspect.KindFigures `json:"-"` // by queue
}

// WholeKind is a kind with all of its figures.
type WholeKind struct {
	Kind
	Activity
}

// Whole returns the kind with all of its figures.
func (l *Kind) Whole() WholeKind { return WholeKind{*l, OfFigures(l.Figures)} }

// add adds the figures of the kind in one queue.
func (l *Kind) add(f inspect.KindFigures) {
	l.Ended.add(f.Ends)
	q := KindQueue{Queue: f.Queue}
	q.add(f.Ends)
	l.Queues = append(l.Queues, q)
	l.Duration = f.Duration.Plus(l.Duration)
}

// ReadKinds returns all kinds that have figures, defaults or a worker, by name.
func ReadKinds(ctx context.Context, q *queue.Queue) (map[string]*Kind, error) {
	kinds, err := inspect.Kinds(ctx, q)
	if err != nil {
		return nil, err
	}
	list := map[string]*Kind{}
	for _, k := range kinds {
		l := &Kind{Kind: k.Kind, Queues: []KindQueue{}, Defaults: Stored{}, Workers: k.Workers, Figures: k.Queues}
		maps.Copy(l.Defaults, k.Defaults)
		for _, f := range k.Queues {
			l.add(f)
		}
		l.P50, l.P99 = Bound(l.Duration, 0.5), Bound(l.Duration, 0.99)
		list[k.Kind] = l
	}
	return list, nil
}

// Bound returns an upper bound for a quantile of the values, in ms. It returns nil if the histogram has no values, or if
// the quantile is above the last bucket.
func Bound(h inspect.Histogram, fraction float64) *int64 {
	seconds := h.Quantile(fraction)
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return nil
	}
	ms := int64(math.Round(seconds * 1000))
	return &ms
}
