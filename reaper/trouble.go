package reaper

import (
	"log/slog"
	"time"
)

// reminder is how long further errors of a partition are not logged after the first was logged. Each later span is twice
// as long, up to mostQuiet. So an outage of a day is some thirty lines.
const (
	reminder  = time.Minute
	mostQuiet = time.Hour
)

// trouble handles the errors of a partition: it decides which are logged, and how long to
// wait before the next try. One goroutine uses it.
type trouble struct {
	logger    *slog.Logger
	partition int
	began     time.Time     // when sweeps began to fail; zero: the last one succeeded
	told      bool          // an error since began was logged
	quiet     time.Time     // until when no error is logged
	span      time.Duration // of the next quiet time
	unlogged  int           // errors that were not logged
	pause     time.Duration
}

// report logs the first error at once, and reminders while the trouble lasts.
func (t *trouble) report(err string) {
	now := time.Now()
	if t.began.IsZero() {
		t.began, t.told, t.span = now, false, reminder
	}
	if now.Before(t.quiet) {
		t.unlogged++
		return
	}
	t.logger.Error("Error timing out expired tasks: "+err, "partition", t.partition, "not_logged_before", t.unlogged)
	t.told, t.unlogged, t.quiet = true, 0, now.Add(t.span)
	t.span = min(2*t.span, mostQuiet)
}

// backOff returns how long to wait after another failed try: 50 ms, doubled each time up to 1 s.
func (t *trouble) backOff() time.Duration {
	t.pause = min(max(2*t.pause, 50*time.Millisecond), time.Second)
	return t.pause
}

// over is called when a sweep has done everything. It logs the end of what was logged. If the trouble comes back within
// a minute it is not logged again.
func (t *trouble) over() {
	if t.began.IsZero() {
		return
	}
	now := time.Now()
	if t.told {
		t.logger.Info("Expired tasks are timed out again", "partition", t.partition, "lasted_ms", now.Sub(t.began).Milliseconds())
	}
	t.began = time.Time{}
	if latest := now.Add(reminder); t.quiet.After(latest) {
		t.quiet = latest
	}
}
