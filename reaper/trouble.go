package reaper

import (
	"log/slog"
	"time"

	"github.com/curfew-dev/curfew/internal/logonce"
)

// trouble handles the errors of a partition: it logs them, and computes the pause before the next
// try. Only one goroutine uses it.
type trouble struct {
	logger    *slog.Logger
	partition int
	lasting   logonce.Trouble
	pause     time.Duration
}

// report logs the first error at once, and reminders while the trouble lasts.
func (t *trouble) report(err string) {
	if log, unlogged := t.lasting.Failed(); log {
		t.logger.Error("Error timing out expired tasks: "+err, "partition", t.partition, "not_logged_before", unlogged)
	}
}

// backOff returns the pause after another failed try: 50 ms, doubled each time up to 1 s.
func (t *trouble) backOff() time.Duration {
	t.pause = min(max(2*t.pause, 50*time.Millisecond), time.Second)
	return t.pause
}

// end is called when a sweep has succeeded without errors. It logs the end of a trouble that was
// logged.
func (t *trouble) end() {
	if log, lasted := t.lasting.Over(); log {
		t.logger.Info("Expired tasks are timed out again", "partition", t.partition, "lasted_ms", lasted.Milliseconds())
	}
}
