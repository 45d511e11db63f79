package inspect

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/duration"
)

func TestTheLagIsThatOfTheNewestTimeouts(t *testing.T) {
	t.Parallel()
	ms := func(n int) duration.Duration { return duration.Duration(n) * duration.Duration(time.Millisecond) }
	upTo := func(n int) string { // n, n-1, …, 1
		var lags strings.Builder
		for i := n; i > 0; i-- {
			fmt.Fprintf(&lags, "%d ", i)
		}
		return lags.String()
	}
	for _, row := range []struct {
		lags  string
		bound BoundKind
		want  *ExplainedLag
	}{
		{"", BoundDeadline, nil},
		{"7", BoundDeadline, &ExplainedLag{P99: ms(7), Max: ms(7), Of: 1}},
		{"0", BoundWait, &ExplainedLag{Of: 1}},
		{upTo(99), BoundPatience, &ExplainedLag{P99: ms(99), Max: ms(99), Of: 99}},
		{upTo(100), BoundGrace, &ExplainedLag{P99: ms(99), Max: ms(100), Of: 100}},
		{upTo(200), BoundOwner, &ExplainedLag{P99: ms(198), Max: ms(200), Of: 200}},
		{"x 5 5.5 -", BoundAttempt, &ExplainedLag{P99: ms(5), Max: ms(5), Of: 1}}, // other programs write into streams
		{"7", BoundNone, nil},
		{"7", BoundFinal, nil},
		{"7", BoundDecided, nil},
	} {
		o := observed{facts: map[string]string{"lags": row.lags}}
		if got := o.lag(row.bound); !reflect.DeepEqual(got, row.want) {
			t.Errorf("lag(%s) of %.20q = %+v, want %+v", row.bound, row.lags, got, row.want)
		}
	}
}
