package programs

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
)

// lines writes events as lines for people who watch.
type lines struct {
	out  io.Writer
	q    *queue.Queue
	ends map[string]end // by owner: the newest end that it may wait for
	wake map[string]end // by agent: the end of its wait; it has not started again yet
}

// end is something that ends the wait of an agent.
type end struct {
	at    time.Time
	bound bool // at is the instant of a limit
}

func newLines(out io.Writer, q *queue.Queue) *lines {
	return &lines{out: out, q: q, ends: map[string]end{}, wake: map[string]end{}}
}

// write writes a line for each event that is new to the reader.
func (l *lines) write(ctx context.Context, batch events.Batch) error {
	limits := l.limits(ctx, batch.Events)
	var text strings.Builder
	for _, gap := range batch.Gaps {
		fmt.Fprintf(&text, "  %-12s  %d events were trimmed before they could be read\n", "", max(gap.Missed, 0))
	}
	for _, e := range batch.Events {
		word, more := l.words(e, limits)
		if word != "" {
			line := fmt.Sprintf("  %s  %-10s %-7s %-22s  %s", e.At.Local().Format("15:04:05.000"), word, app.PlainWord(e.TaskKind), app.PlainWord(e.TaskID), more)
			text.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := io.WriteString(l.out, text.String())
	return err
}

// mostLimits is how many tasks of a batch are read for their limits. If more come at once, nobody reads the lines.
const mostLimits = 50

// limits returns the time that tasks have, by their ids. A task that cannot be read is not in it.
func (l *lines) limits(ctx context.Context, batch []events.Event) map[string]time.Duration {
	var ids []string
	for _, e := range batch {
		if e.Kind == "task_enqueued" && len(ids) < mostLimits {
			ids = append(ids, e.TaskID)
		}
	}
	limits := map[string]time.Duration{}
	if len(ids) == 0 {
		return limits
	}
	records, err := l.q.GetAll(ctx, ids)
	if err != nil {
		return limits // the lines are told without it; the next read has the error
	}
	for _, r := range records {
		if r != nil && !r.Until.IsZero() {
			limits[r.ID] = r.Until.Sub(r.CreatedAt)
		}
	}
	return limits
}

// words describes an event, with details in more.
func (l *lines) words(e events.Event, limits map[string]time.Duration) (word, more string) {
	switch e.Kind {
	case "task_enqueued":
		if d, limited := limits[e.TaskID]; limited {
			more = "deadline in " + seconds(d)
		}
		return "enqueued", more
	case "task_started":
		if end, woken := l.wake[e.TaskID]; woken {
			delete(l.wake, e.TaskID)
			return "woke", end.lag(e.At)
		}
		if e.Epoch > 1 {
			more = fmt.Sprintf("claim %d, attempt %d", e.Epoch, e.Attempt)
		}
		return "started", more
	case "task_suspended":
		return "waits", "for its tasks: " + field(e, "members")
	case "task_resumed":
		l.wake[e.TaskID] = l.ends[e.TaskID]
		delete(l.ends, e.TaskID)
		return "", "" // it is told when it starts
	case "task_timed_out", "attempt_timed_out":
		l.ended(e, end{instant(e.Fields["deadline_at"]), true})
		return "TIMEOUT", timeout(e)
	case "wait_timed_out":
		l.ends[e.TaskID] = end{instant(e.Fields["wait_deadline_at"]), true}
		return "TIMEOUT", fmt.Sprintf("of its wait, with %s of %s tasks; %s", field(e, "settled"), field(e, "members"), timeout(e))
	case "task_completed":
		l.ended(e, end{e.At, false})
		return "completed", ""
	case "task_failed":
		l.ended(e, end{e.At, false})
		return "failed", field(e, "reason")
	case "task_cancelled":
		l.ended(e, end{})
		return "cancelled", field(e, "reason")
	case "task_retried", "task_released", "task_cancelling", "deadline_near", "task_broken", "rejected", "queue_controlled":
		return strings.TrimPrefix(e.Kind, "task_"), field(e, "reason")
	case "task_lease_lost":
		return "given back", "its worker is gone"
	case "":
		return "", "" // of another program
	}
	return app.PlainWord(e.Kind), ""
}

// ended notes the end of a task for the line about its owner.
func (l *lines) ended(e events.Event, by end) {
	delete(l.ends, e.TaskID)
	delete(l.wake, e.TaskID)
	if e.Owner != "" && !by.at.IsZero() && e.Kind != "attempt_timed_out" {
		l.ends[e.Owner] = by
	}
}

// lag returns the time between the decision of a wait and the wake of its agent.
func (d end) lag(woke time.Time) string {
	switch {
	case d.at.IsZero():
		return ""
	case d.bound:
		return fmt.Sprintf("was due no later than %s, lag %d ms", d.at.Local().Format("15:04:05.000"), woke.Sub(d.at).Milliseconds())
	}
	return fmt.Sprintf("%d ms after its task had ended", woke.Sub(d.at).Milliseconds())
}

func timeout(e events.Event) string {
	ms, _ := strconv.ParseInt(e.Fields["timeout_duration_ms"], 10, 64)
	return fmt.Sprintf("after %.3f s, noticed %s ms late", float64(ms)/1000, field(e, "lag_ms"))
}

// field returns a field that an event may have. Anybody can write into a stream of events.
func field(e events.Event, name string) string {
	if text, has := e.Fields[name]; has {
		return app.PlainWord(text)
	}
	return ""
}

func instant(ms string) time.Time {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
