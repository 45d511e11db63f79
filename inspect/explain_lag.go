package inspect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

// lag sums up how late timeouts were written; nil if none was told, or if nobody will have
// to notice what bounds the task.
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
	of := func(n int64) duration.Duration { return duration.Duration(time.Duration(n) * time.Millisecond) }
	return &ExplainedLag{P99: of(lags[(len(lags)*99+99)/100-1]), Max: of(lags[len(lags)-1]), Of: len(lags)}
}
