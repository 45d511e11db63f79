package reaper

import (
	"log/slog"
	"time"
)

// quiet is how long further errors of a partition are not logged after one was logged. So an
// outage is one line in ten seconds, not one line a sweep.
const quiet = 10 * time.Second

// trouble handles the errors of a partition: it decides which are logged, and how long to
// wait before the next try. One goroutine uses it.
type trouble struct {
	logger    *slog.Logger
	partition int
	logged    time.Time // when the last error was logged
	unlogged  int       // errors since then
	pause     time.Duration
}

// report logs the first error at once, and then at most one error every ten seconds.
func (t *trouble) report(err string) {
	if !t.logged.IsZero() && time.Since(t.logged) < quiet {
		t.unlogged++
		return
	}
	t.logger.Error("Error timing out expired tasks: "+err, "partition", t.partition, "not_logged_before", t.unlogged)
	t.logged, t.unlogged = time.Now(), 0
}

// backOff returns how long to wait after another failed try: 50 ms, doubled each time up to 1 s.
func (t *trouble) backOff() time.Duration {
	t.pause = min(max(2*t.pause, 50*time.Millisecond), time.Second)
	return t.pause
}

// over is called when a try has succeeded.
func (t *trouble) over() { t.pause = 0 }
