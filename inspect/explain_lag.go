package inspect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

// lag returns the delays with which recent timeouts were written. It returns nil if there were none,
// or if no later change of the task depends on a clock.
func (o *observed) lag(bound BoundKind) *ExplainedLag {
	switch bound {
	case BoundNone, BoundFinal, BoundDecided:
		return nil
	}
	var lags []int64
	for word := range strings.FieldsSeq(o.facts["lags"]) {
		if n, err := strconv.ParseInt(word, 10, 64); err == nil {
			lags = append(lags, n)
		}
	}
	if len(lags) == 0 {
		return nil
	}
	slices.Sort(lags)
	toDuration := func(n int64) duration.Duration { return duration.Duration(time.Duration(n) * time.Millisecond) }
	return &ExplainedLag{P99: toDuration(lags[(len(lags)*99+99)/100-1]), Max: toDuration(lags[len(lags)-1]), Of: len(lags)}
}
