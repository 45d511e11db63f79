package await

import (
	"testing"
	"time"
)

// endsIn is a test whose binary must end after left. Without a limit, left is 0.
type endsIn struct {
	testing.TB
	left time.Duration
}

func (e endsIn) Deadline() (time.Time, bool) { return time.Now().Add(e.left), e.left > 0 }

func TestTheLimitEndsBeforeTheTestBinary(t *testing.T) {
	for _, test := range []struct {
		claim string
		tb    testing.TB
		want  time.Duration
	}{
		{"without a deadline", endsIn{}, Patience},
		{"long before the deadline", endsIn{left: time.Hour}, Patience},
		{"near the deadline", endsIn{left: time.Minute}, time.Minute - spare},
		{"at the deadline", endsIn{left: spare}, time.Second},
		{"a benchmark", struct{ testing.TB }{}, Patience},
	} {
		if got := Limit(test.tb); got > test.want || got < test.want-time.Second {
			t.Errorf("%s: %v, want %v", test.claim, got, test.want)
		}
	}
}
