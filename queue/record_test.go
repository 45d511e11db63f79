package queue

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/expr"
)

func TestPhaseDistinguishesWhatAStatusDoesNot(t *testing.T) {
	for _, row := range []struct {
		record *Record
		want   string
	}{
		{nil, ""},
		{&Record{Status: Pending}, "Ready"},
		{&Record{Status: Pending, AvailableAt: time.UnixMilli(1)}, "Created"},
		{&Record{Status: Running}, "Running"},
		{&Record{Status: Waiting}, "Suspended"},
		{&Record{Status: Completed}, "Succeeded"},
		{&Record{Status: Cancelled, Reason: ReasonOwnerEnded}, "Cancelled"},
		{&Record{Status: Failed, Reason: ReasonError}, "Error"},
		{&Record{Status: Failed, Reason: ReasonFailed}, "Failed"},
		{&Record{Status: Failed, Reason: ReasonTimeout, TimedOut: true}, "Timeout"},
		{&Record{Status: Failed, Reason: ReasonLeaseLost}, "Error"},
	} {
		got := row.record.Phase()
		if got != row.want {
			t.Errorf("Phase of %+v = %q, want %q", row.record, got, row.want)
		}
		if err := expr.CheckRetry("k", `tasks.k.phase == "`+got+`"`); row.record != nil && err != nil {
			t.Errorf("a retry expression cannot be compared with the phase %q: %v", got, err)
		}
	}
}
