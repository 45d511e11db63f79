// Package logonce decides which errors of trouble that lasts are logged: the first, and reminders after spans that double. A
// line at the end says how long it lasted.
package logonce

import "time"

// Reminder is how long further errors are not logged after the first was logged. Each later span is twice as long, up to an
// hour. So an outage of a day is some thirty lines.
const Reminder = time.Minute

const mostQuiet = time.Hour

// Trouble counts the errors from the first one until everything works again. The zero value is no trouble. Its methods are not
// safe for concurrent use.
type Trouble struct {
	began    time.Time     // zero: there is no trouble
	told     bool          // an error since began was logged
	quiet    time.Time     // until when no error is logged
	span     time.Duration // of the next quiet time
	unlogged int           // errors that were not logged
}

// Failed records an error. It reports whether to log it, and how many errors before it were not logged.
func (t *Trouble) Failed() (log bool, unlogged int) {
	now := time.Now()
	if t.began.IsZero() {
		t.began, t.told, t.span = now, false, Reminder
	}
	if now.Before(t.quiet) {
		t.unlogged++
		return false, 0
	}
	unlogged = t.unlogged
	t.told, t.unlogged, t.quiet = true, 0, now.Add(t.span)
	t.span = min(2*t.span, mostQuiet)
	return true, unlogged
}

// Over records that everything works. It reports whether to log the end, because an error was logged, and how long the
// trouble lasted. If the trouble comes back within a minute it is not logged again.
func (t *Trouble) Over() (log bool, lasted time.Duration) {
	if t.began.IsZero() {
		return false, 0
	}
	now := time.Now()
	lasted, t.began = now.Sub(t.began), time.Time{}
	if latest := now.Add(Reminder); t.quiet.After(latest) {
		t.quiet = latest
	}
	return t.told, lasted
}
