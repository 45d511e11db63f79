package worker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

func TestTaskTimeoutFromEnv(t *testing.T) {
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"", 0}, {" ", 0}, {"0", 0}, {"0s", 0}, {"5s", 5 * time.Second}, {"1h30m", 90 * time.Minute},
		{"2d", 48 * time.Hour}, {"1d12h", 36 * time.Hour}, {"0.5d", 12 * time.Hour}, {"0d", 0}, {" 5s\n", 5 * time.Second},
	} {
		t.Setenv(TaskTimeoutVariable, c.value)
		if got, err := TaskTimeoutFromEnv(); err != nil || got != c.want {
			t.Errorf("%q is %v, %v; want %v", c.value, got, err, c.want)
		}
	}
	for _, bad := range []string{"5", "s", "-5s", "-1d", "1d-5s", "d", "1dd", "1h2d", "200000d", "1e300d", "NaNd", "Infd", "five", "5 s", "1.5ms"} {
		t.Setenv(TaskTimeoutVariable, bad)
		d, err := TaskTimeoutFromEnv()
		if err == nil || d != 0 {
			t.Errorf("%q is %v, want an error", bad, d)
			continue
		}
		if !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("%q: the error %v is not refusal.ErrInvalid", bad, err)
		}
		for _, word := range []string{TaskTimeoutVariable, bad, "write "} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q: the error %q does not have %q: it must name the variable, the value, and what to write", bad, err, word)
			}
		}
	}
}
