package reaper

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Trouble of a day is a line when it begins, reminders with growing spans, and a line when it ends.
func TestTroubleThatLastsIsLoggedAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		trouble := &trouble{logger: slog.New(slog.NewTextHandler(&log, nil)), partition: 3}
		for range 24 * 60 * 60 {
			trouble.report("no Redis")
			time.Sleep(time.Second) // sleeps: on the clock of the bubble, which takes no time
		}
		trouble.end()
		trouble.end()
		if n := strings.Count(log.String(), "level=ERROR"); n < 24 || n > 32 {
			t.Errorf("a day of trouble is %d lines, want about 30", n)
		}
		if n := strings.Count(log.String(), "partition=3 lasted_ms=86400000\n"); n != 1 {
			t.Errorf("%d lines of its end, want 1:\n%s", n, log.String())
		}
	})
}

// Trouble that comes and goes every second is not logged each time.
func TestTroubleThatComesAndGoesIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		trouble := &trouble{logger: slog.New(slog.NewTextHandler(&log, nil))}
		for range 600 {
			trouble.report("no Redis")
			time.Sleep(time.Second) // sleeps: on the clock of the bubble, which takes no time
			trouble.end()
		}
		errors, ends := strings.Count(log.String(), "level=ERROR"), strings.Count(log.String(), "level=INFO")
		if errors != 10 || ends != errors {
			t.Errorf("ten minutes are %d errors and %d ends, want 10 of each", errors, ends)
		}
	})
}
