package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Trouble of a day is a line when it begins, reminders with growing spans, and a line when all calls succeed again.
func TestTroubleOfAWorkerIsLoggedAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &Worker{id: "w1", log: slog.New(slog.NewTextHandler(&log, nil))}
		p := &partition{w: w, number: 3}
		away := errors.New("no Redis")
		for range 24 * 60 * 60 {
			p.callFailed(requests, "requests", away)
			p.callFailed(awaits, "awaits", away)
			p.callWorked(heartbeats) // other calls may succeed
			time.Sleep(time.Second)  // sleeps: on the clock of the bubble, which takes no time
		}
		p.callWorked(requests)
		if strings.Contains(log.String(), "level=INFO") {
			t.Error("the end is logged although a call still fails")
		}
		p.callWorked(awaits)
		p.callWorked(awaits)
		if n := strings.Count(log.String(), "level=ERROR"); n < 24 || n > 32 {
			t.Errorf("a day of trouble is %d lines, want about 30", n)
		}
		if n := strings.Count(log.String(), "worker=w1 partition=3 lasted_ms=86400000\n"); n != 1 {
			t.Errorf("%d lines of its end, want 1:\n%s", n, log.String())
		}
	})
}

// What has no end is logged in intervals that double, and from the first one again after a rest.
func TestAThrottleDoublesWhileItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := throttle{every: time.Minute}
		during := func(seconds int) (n int) {
			for range seconds {
				if once.allow("a") {
					n++
				}
				time.Sleep(time.Second) // sleeps: on the clock of the bubble, which takes no time
			}
			return n
		}
		if n := during(24 * 60 * 60); n < 24 || n > 32 {
			t.Errorf("a day is %d lines, want about 30", n)
		}
		time.Sleep(2 * time.Hour) // sleeps: on the clock of the bubble, which takes no time
		if n := during(100); n != 2 {
			t.Errorf("after a rest, 100 seconds are %d lines, want 2", n)
		}
	})
}
