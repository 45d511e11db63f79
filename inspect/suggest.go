package inspect

import (
	"context"
	"math"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Suggestion says how long tasks of a kind took, so that somebody can choose a timeout for it.
type Suggestion struct {
	Kind     string
	Count    int64 // how many tasks ended after they had run
	TimedOut int64 // those of them that timed out: they would have taken longer
	// Upper bounds of what a half of them took, 99 % and 99.5 %; 0 if there are no tasks, or if some of these took longer than a day.
	P50, P99, P995 time.Duration
}

// Timeout returns a time that tasks of the kind need only rarely: the factor times P995. It is 0 if P995 is not known.
func (s Suggestion) Timeout(factor float64) time.Duration {
	return time.Duration(float64(s.P995) * factor).Round(time.Millisecond)
}

// Suggest returns how long tasks of some kinds took, in all queues, since the namespace was created.
func Suggest(ctx context.Context, q *queue.Queue, kinds ...string) ([]Suggestion, error) {
	all := make([]Suggestion, len(kinds))
	if len(kinds) == 0 {
		return all, nil
	}
	figures, err := figuresOf(ctx, q, kinds)
	if err != nil {
		return nil, err
	}
	for i, kind := range kinds {
		took := newHistogram(timeBounds)
		all[i].Kind = kind
		for _, f := range figures {
			if f.Kind != kind {
				continue
			}
			all[i].TimedOut += f.Timed.Count()
			for bucket, n := range f.Duration.Counts {
				took.Counts[bucket] += n
			}
		}
		all[i].Count = took.Count()
		all[i].P50, all[i].P99, all[i].P995 = inTime(took.Quantile(0.5)), inTime(took.Quantile(0.99)), inTime(took.Quantile(0.995))
	}
	return all, nil
}

// inTime returns a quantile as a time, 0 if it is unknown.
func inTime(seconds float64) time.Duration {
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return 0
	}
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond
}
