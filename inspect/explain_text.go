package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// String says it in some sentences, in one line. What strangers wrote is quoted.
func (e *Explanation) String() string {
	words := []string{e.subject() + e.where() + "."}
	if said := e.detail(); said != "" {
		words = append(words, said)
	}
	if said := e.boundText(); said != "" {
		words = append(words, said)
	}
	if e.Lag != nil {
		words = append(words, fmt.Sprintf("Timeouts here were noticed within %v (p99 of the newest %d).", max(e.Lag.P99, duration.Duration(time.Millisecond)), e.Lag.Of))
	}
	for _, w := range e.Warnings {
		if w.Word != WarnNoBound { // boundText has it
			words = append(words, "Warning: "+w.Text+".")
		}
	}
	return strings.Join(words, " ")
}

func (e *Explanation) subject() string {
	s := e.ID
	if e.Kind != "" {
		s += " (" + quoteOdd(e.Kind) + ")"
	}
	if e.Status == "" {
		return s + " "
	}
	return s + " is " + quoteOdd(string(e.Status)) + ": it "
}

// where is the rest of a sentence that begins with the task.
func (e *Explanation) where() string {
	switch e.Why {
	case WhyInLine:
		return "stands in line" + e.lineText()
	case WhyWoken:
		return "was woken, and stands in line to go on" + e.lineText()
	case WhyDelayed:
		return "may not start yet"
	case WhyBackingOff:
		return fmt.Sprintf("failed, and waits for retry %d of %d", e.Retries, e.MaxRetries)
	case WhyPromise:
		return "is a promise that nobody has settled"
	case WhyTimer:
		return "is a timer whose time has not come"
	case WhyRunning:
		return e.runText()
	case WhyCancelling:
		return e.runText() + fmt.Sprintf(", and was cancelled at %s%s: its handler has its grace to clean up", clockText(e.Run.CancelledAt), quoted(e.Run.CancelReason))
	case WhyWaiting:
		return e.waitText()
	case WhyWaking:
		return "is being woken, as its wait is " + map[string]string{"satisfied": "over", "impossible": "over (what it waits for cannot come any more)", "timed_out": "out of time"}[e.Wait.Reason]
	case WhyAttemptOver:
		return "has taken too long for this attempt, and is tried again as soon as that is written"
	case WhyOverdue:
		if e.End.Status == queue.Completed {
			return "is a timer whose time has come, and completes as soon as that is written"
		}
		return "is out of time, and ends as soon as that is written"
	case WhyDoomed:
		return "ends with " + e.Bound.Task + ", which has ended, as soon as that is written"
	case WhyBroken:
		return "has a record that cannot be worked with"
	}
	return "ended at " + clockText(e.End.At) + e.endText()
}

func (e *Explanation) lineText() string {
	switch {
	case e.Line == nil || e.Line.Ahead < 0:
		return " of the queue " + quoteOdd(e.Queue)
	case e.Line.Ahead == 0:
		return " of the queue " + quoteOdd(e.Queue) + " as the first"
	}
	return fmt.Sprintf(" of the queue %s, %d before it", quoteOdd(e.Queue), e.Line.Ahead)
}

func (e *Explanation) runText() string {
	s := fmt.Sprintf("is run by %s since %s, attempt %d", quoteOdd(e.Run.Worker), clockText(e.Since), e.Run.Attempt)
	if e.MaxRetries > 0 {
		s += fmt.Sprintf(" of %d", e.MaxRetries+1)
	}
	return s
}

func (e *Explanation) waitText() string {
	w := e.Wait
	if w == nil {
		return "waits"
	}
	s := ""
	switch w.Mode {
	case queue.WaitAny:
		s = fmt.Sprintf("waits for the first of %s", tasks(w.Members))
	case queue.WaitAnyOK:
		s = fmt.Sprintf("waits for the first of %s that completes", tasks(w.Members))
	case queue.WaitNOfM:
		s = fmt.Sprintf("waits for %d of %s to complete", w.Need, tasks(w.Members))
	case queue.WaitNSettled:
		s = fmt.Sprintf("waits for %d of %s to end", w.Need, tasks(w.Members))
	case queue.WaitFailFast:
		s = fmt.Sprintf("waits for all of %s, or the first that fails,", tasks(w.Members))
	default:
		s = fmt.Sprintf("waits for all of %s", tasks(w.Members))
	}
	s += " since " + clockText(e.Since)
	if w.Because != "" {
		s += ", " + strconv.Quote(w.Because)
	}
	return s
}

// detail is a sentence with what is behind it.
func (e *Explanation) detail() string {
	switch e.Why {
	case WhyWaiting, WhyWaking:
		if w := e.Wait; w != nil {
			s := fmt.Sprintf("%d done, %d failed, ", w.OK, w.Bad)
			if other := w.Settled - w.OK - w.Bad; other > 0 {
				s += fmt.Sprintf("%d ended otherwise, ", other)
			}
			return s + fmt.Sprintf("%d left.", w.Left)
		}
	case WhyBackingOff:
		if e.LastError != "" {
			return "The last attempt said" + quoted(e.LastError) + "."
		}
	case WhyRunning:
		return e.leaseText("given back")
	case WhyCancelling:
		return e.leaseText("CANCELLED")
	case WhyOverdue, WhyDoomed:
		return fmt.Sprintf("It will be %s at %s%s.", e.End.Status, clockText(e.End.At), e.endText())
	}
	return ""
}

// leaseText says what becomes of a task whose worker is gone, if that comes before its bound.
func (e *Explanation) leaseText(then string) string {
	ends := e.Run.LeaseEnds
	if ends.Before(e.Now) || e.Bound.Kind != BoundNone && !ends.Before(e.Bound.At) {
		return ""
	}
	return "If that worker is gone, it is " + then + " at " + clockText(ends) + "."
}

// endText is how a task has ended, in brackets.
func (e *Explanation) endText() string {
	var said []string
	if e.End.Reason != "" {
		said = append(said, string(e.End.Reason))
	}
	if e.End.TimeoutType != "" {
		said = append(said, string(e.End.TimeoutType))
	}
	if e.End.Lag > 0 {
		said = append(said, "noticed "+e.End.Lag.String()+" later")
	}
	if e.End.By != "" {
		said = append(said, "of "+e.End.By)
	}
	s := ""
	if len(said) > 0 {
		s = " (" + strings.Join(said, ", ") + ")"
	}
	if e.End.Error != "" {
		s += quoted(e.End.Error)
	}
	return s
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return strconv.Itoa(n) + " tasks"
}

func clockText(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// quoted is a stranger's text behind a colon, "" for none.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return ": " + strconv.Quote(refusal.Clip(s))
}

// quoteOdd returns a name as it is, and any other text quoted.
func quoteOdd(s string) string {
	if names.Valid(s, "._-:/") {
		return s
	}
	return strconv.Quote(refusal.Clip(s))
}
