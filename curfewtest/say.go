package curfewtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// sentence returns a sentence with the status of a task and its cause. want is the expected status, or "".
func (s *Stage) sentence(r *queue.Record, want string) string {
	status := string(r.Status)
	if want != "" {
		status += ", not " + want
	}
	return fmt.Sprintf("Task %s of kind %q is %s: %s.", r.ID, r.Kind, status, s.cause(r))
}

func (s *Stage) describe(r *queue.Record) string { return s.sentence(r, "") }

func (s *Stage) cause(r *queue.Record) string {
	parts := []string{s.state(r)}
	if !r.Status.Ended() {
		if r.Retries > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s failed, the last with %s",
				r.Retries, plural(r.MaxRetries+1, "attempt"), quoted(r.LastError)))
		}
		if r.Overdue {
			parts = append(parts, "its end is decided and not written yet: Advance(0) does that")
		} else if !r.Until.IsZero() {
			parts = append(parts, "its deadline is "+s.when(r.Until))
		}
	}
	return strings.Join(parts, "; ")
}

// state explains the status of a task.
func (s *Stage) state(r *queue.Record) string {
	switch {
	case r.Status == queue.Pending && r.Role == "timer":
		return "it is a timer, due " + s.when(r.AvailableAt)
	case r.Status == queue.Pending && r.Role != "":
		return string("it is a " + r.Role + ", which Queue.Resolve or Reject settles")
	case r.Status == queue.Pending && !r.AvailableAt.IsZero():
		return fmt.Sprintf("it can start %s", s.when(r.AvailableAt))
	case r.Status == queue.Pending:
		return fmt.Sprintf("it is ready in queue %q", r.Queue)
	case r.Status == queue.Running && !r.CancelAt.IsZero():
		return fmt.Sprintf("it was cancelled %s, and the grace of its handler ends %s", s.when(r.CancelAt), s.when(r.GraceEnds))
	case r.Status == queue.Running:
		return fmt.Sprintf("attempt %d began %s and has not been reported", r.Retries+1, s.when(r.StartedAt))
	case r.Status == queue.Waiting:
		return s.waits(r)
	case r.Status == queue.Completed:
		return "its result is " + quoted(string(r.Result))
	case r.TimedOut:
		return fmt.Sprintf("%s passed %s", limit(r), s.when(r.CompletedAt))
	case r.Status == queue.Cancelled:
		return "the reason is " + quoted(r.Error)
	}
	code := ""
	if r.Code != 0 {
		code = fmt.Sprintf(", exit code %d", r.Code)
	}
	return fmt.Sprintf("%s (%s%s)", quoted(r.Error), ending(r), code)
}

// waits describes the wait of an agent.
func (s *Stage) waits(r *queue.Record) string {
	e, err := inspect.Explain(s.ctx, s.Queue, r.ID)
	if err != nil || e.Wait == nil {
		return "it is suspended"
	}
	return fmt.Sprintf("it waits for %s, of which %s ended", e.Wait.Label, has(e.Wait.Settled))
}

func has(n int) string {
	if n == 1 {
		return "1 has"
	}
	return fmt.Sprintf("%d have", n)
}

// limit returns the limit that ended a task.
func limit(r *queue.Record) string {
	switch kind := r.TimeoutType; {
	case kind == queue.TimeoutExecution, kind == queue.TimeoutWorkflow && r.CompletedAt.Equal(r.Deadline) && r.Fields["until"] == "":
		return "its deadline"
	case kind == queue.TimeoutQueue:
		return "the limit of its line"
	case kind == queue.TimeoutWorkflow:
		return "the deadline of its owner"
	default:
		return "the limit of its " + string(kind)
	}
}

// ending returns which attempt was the last, and why.
func ending(r *queue.Record) string {
	last := fmt.Sprintf("in attempt %d of %d", r.Retries+1, r.MaxRetries+1)
	switch {
	case r.Reason == "failed":
		return "declared permanent " + last
	case r.Reason == "lease_lost":
		return "its workers were lost " + last
	case r.RetryState == "deadline":
		return last + ", and there was no time for another before its deadline"
	}
	return last
}

// when returns an instant relative to the clock of the stage.
func (s *Stage) when(at time.Time) string {
	switch d := at.Sub(s.Now()); {
	case d > 0:
		return "in " + d.String()
	case d < 0:
		return (-d).String() + " ago"
	}
	return "now"
}

// unfinished lists the tasks that have not ended, after a sentence that no task is ready.
func (s *Stage) unfinished() string {
	s.tb.Helper()
	live := s.live()
	if len(live) == 0 {
		if tasks := s.Tasks(""); len(tasks) > 0 {
			return " All tasks have ended." + s.kinds(tasks)
		}
		return s.kinds(nil)
	}
	hint, delayed := "", false
	for _, r := range live {
		delayed = delayed || !r.AvailableAt.IsZero()
		if r.Status == queue.Pending && r.Role == "" && r.AvailableAt.IsZero() {
			hint = "\nA task is ready and was not handed out: its queue is paused or at its limit, or the worker does not take from that queue."
		}
	}
	if delayed {
		hint += "\nMove the clock with Advance, or call DrainAll, which moves it to each start."
	}
	return fmt.Sprintf(" %s not ended:%s%s", plural(len(live), "task has", "tasks have"), s.listed(live, s.describe), hint)
}

// listed returns a line for each of the first ten tasks, and the number of the others.
func (s *Stage) listed(all []*queue.Record, line func(*queue.Record) string) string {
	var b strings.Builder
	for i, r := range all {
		if i == 10 {
			fmt.Fprintf(&b, "\n\tand %d more", len(all)-i)
			break
		}
		b.WriteString("\n\t" + line(r))
	}
	return b.String()
}

// sent describes a task as it was enqueued.
func sent(r *queue.Record) string {
	line := fmt.Sprintf("%s in queue %q with payload %s", r.ID, r.Queue, quoted(string(r.Payload)))
	if len(r.Headers) > 0 {
		line += fmt.Sprintf(" and headers %v", r.Headers)
	}
	return line
}

// kinds returns how many tasks of each kind there are, and whether records were removed, as sentences after
// another one. all has the records that are left.
func (s *Stage) kinds(all []*queue.Record) string {
	s.tb.Helper()
	removed := -len(all)
	for _, line := range s.stats().Queues {
		removed += int(line.Enqueued)
	}
	switch {
	case len(all) == 0 && removed > 0:
		return " No record is left: records are removed after their retention."
	case len(all) == 0:
		return " No task was enqueued."
	}
	counts := map[string]int{}
	for _, r := range all {
		counts[r.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d of kind %q", counts[kind], kind))
	}
	sentence := " There are " + strings.Join(parts, ", ") + "."
	if removed > 0 {
		sentence += fmt.Sprintf(" %s removed: records are removed after their retention.", plural(removed, "record was", "records were"))
	}
	return sentence
}

// quoted returns a text quoted, short and in one line. It leaves out the stack of a panic.
func quoted(text string) string {
	const limit = 200
	text, _, _ = strings.Cut(text, "\n\n")
	if len(text) > limit {
		return fmt.Sprintf("%q… (%d bytes)", text[:limit], len(text))
	}
	return fmt.Sprintf("%q", text)
}

// plural returns a number and a noun: plural(2, "task") is "2 tasks". many can give the plural form.
func plural(n int, one string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(many) > 0:
		return fmt.Sprintf("%d %s", n, many[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}
