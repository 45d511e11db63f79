package reaper

import (
	"log/slog"
	"time"
)

// quiet is how long a partition's further errors are not logged after one was: an
// outage is one line in ten seconds, not one a sweep.
const quiet = 10 * time.Second

// trouble is what goes wrong in a partition: how often it is told, and how long to
// wait before the next try. It belongs to one goroutine.
type trouble struct {
	logger    *slog.Logger
	partition int
	told      time.Time
	untold    int
	pause     time.Duration
}

// report logs an error, at once and then at most every ten seconds.
func (t *trouble) report(err string) {
	if !t.told.IsZero() && time.Since(t.told) < quiet {
		t.untold++
		return
	}
	t.logger.Error("Error timing out expired tasks: "+err, "partition", t.partition, "not_logged_before", t.untold)
	t.told, t.untold = time.Now(), 0
}

// backOff is how long to wait after another failed try: 50 ms, doubling to 1 s.
func (t *trouble) backOff() time.Duration {
	t.pause = min(max(2*t.pause, 50*time.Millisecond), time.Second)
	return t.pause
}

// over says that a try succeeded.
func (t *trouble) over() { t.pause = 0 }
