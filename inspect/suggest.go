package inspect

import (
	"context"
	"math"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Suggestion holds the run times of tasks of a kind, from which a person can choose a timeout.
type Suggestion struct {
	Kind     string
	Count    int64 // number of tasks that ended after they had run
	TimedOut int64 // number of these that timed out, and would have taken longer
	// Upper bounds of the time that a half of them took, 99 % and 99.5 %; 0 if there are no tasks,
	// or if some of these took longer than a day.
	P50, P99, P995 time.Duration
}

// mostTimeout is 100 years, since a factor can be any number.
const mostTimeout = 100 * 365 * 24 * time.Hour

// Timeout returns a timeout that tasks of the kind rarely reach: the factor times P995, up to 100
// years. It is 0 if P995 is unknown, or if the factor is not a positive number.
func (s Suggestion) Timeout(factor float64) time.Duration {
	if s.P995 <= 0 || !(factor > 0) { // !(NaN > 0)
		return 0
	}
	return time.Duration(min(float64(s.P995)*factor, float64(mostTimeout))).Round(time.Millisecond)
}

// Suggest returns the run times of tasks of these kinds, in all queues, since the namespace was
// created.
func Suggest(ctx context.Context, q *queue.Queue, kinds ...string) ([]Suggestion, error) {
	suggestions := make([]Suggestion, len(kinds))
	if len(kinds) == 0 {
		return suggestions, nil
	}
	figures, err := figuresOf(ctx, q, kinds)
	if err != nil {
		return nil, err
	}
	for i, kind := range kinds {
		took := newHistogram(timeBounds)
		suggestions[i].Kind = kind
		for _, f := range figures {
			if f.Kind != kind {
				continue
			}
			suggestions[i].TimedOut += f.Timed.Count()
			for bucket, n := range f.Duration.Counts {
				took.Counts[bucket] += n
			}
		}
		suggestions[i].Count = took.Count()
		suggestions[i].P50, suggestions[i].P99, suggestions[i].P995 = inTime(took.Quantile(0.5)), inTime(took.Quantile(0.99)), inTime(took.Quantile(0.995))
	}
	return suggestions, nil
}

// inTime returns a quantile as a time, 0 if it is unknown.
func inTime(seconds float64) time.Duration {
	if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return 0
	}
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond
}
