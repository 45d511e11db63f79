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

// String returns the explanation as a few sentences in one line. Text that users wrote is quoted.
func (e *Explanation) String() string {
	words := []string{e.subject() + e.where() + "."}
	if sentence := e.detail(); sentence != "" {
		words = append(words, sentence)
	}
	if sentence := e.boundText(); sentence != "" {
		words = append(words, sentence)
	}
	if e.Lag != nil {
		words = append(words, fmt.Sprintf("Recent timeouts in this partition were noticed within %v (p99 of %d).", max(e.Lag.P99, duration.Duration(time.Millisecond)), e.Lag.Of))
	}
	for _, w := range e.Warnings {
		if w.Word != WarnNoBound { // boundText includes this one
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

// where returns the end of the sentence that begins with subject.
func (e *Explanation) where() string {
	switch e.Why {
	case WhyInLine:
		return "is in line" + e.lineText()
	case WhyWoken:
		return "was woken, and is in line to continue" + e.lineText()
	case WhyDelayed:
		return "cannot start yet"
	case WhyHeld:
		switch e.Held {
		case queue.HeldSuspect:
			if e.LeaseLosses == 1 {
				return "is held apart from the line, because its last worker died; a worker takes few such tasks at once"
			}
			return fmt.Sprintf("is held apart from the line, because its last %d workers died, perhaps of it; it goes on as soon as a worker holds no other task", e.LeaseLosses)
		case queue.HeldDiverged:
			return "is held, because its code has changed and no live worker can replay it; it goes on as soon as a worker with another program starts"
		}
		return "is held, because no live worker of the queue " + quoteOdd(e.Queue) + " handles its kind; it goes on as soon as one starts"
	case WhyGivenBack:
		return "was given back by its worker" + quotedReason(e.ReleaseReason)
	case WhyBackingOff:
		return fmt.Sprintf("failed, and waits for retry %d of %d", e.Retries, e.MaxRetries)
	case WhyPromise:
		s := "is a promise that has not been settled"
		if e.ResultType != "" {
			s += ": its result must be of type " + e.ResultType
		}
		return s
	case WhyTimer:
		return "is a timer that is not due yet"
	case WhyRunning:
		return e.runText()
	case WhyCancelling:
		return e.runText() + fmt.Sprintf(", and was cancelled at %s%s; its handler has its grace to clean up", clockText(e.Run.CancelledAt), quoted(e.Run.CancelReason))
	case WhyWaiting:
		return e.waitText()
	case WhyWaking:
		return "is being woken: its wait is " + map[string]string{"satisfied": "over", "impossible": "over (its condition cannot be met any more)", "timed_out": "out of time"}[e.Wait.Reason]
	case WhyAttemptOver:
		return "has exceeded the limit of its attempt, and is retried at the next sweep or call"
	case WhyOverdue:
		if e.End.Status == queue.Completed {
			return "is a timer that is due, and completes at the next sweep or call"
		}
		return "is out of time, and ends at the next sweep or call"
	case WhyDoomed:
		return "ends at the next sweep or call, because " + e.Bound.Task + " has ended"
	case WhyBroken:
		return "has a record that cannot be worked with"
	}
	return "ended at " + clockText(e.End.At) + e.endText()
}

func (e *Explanation) lineText() string {
	switch {
	case e.Line == nil || e.Line.Ahead < 0:
		return " in the queue " + quoteOdd(e.Queue)
	case e.Line.Ahead == 0:
		return " in the queue " + quoteOdd(e.Queue) + " as the first"
	}
	return fmt.Sprintf(" in the queue %s, with %d before it", quoteOdd(e.Queue), e.Line.Ahead)
}

func (e *Explanation) runText() string {
	s := fmt.Sprintf("has run on %s since %s, attempt %d", quoteOdd(e.Run.Worker), clockText(e.Since), e.Run.Attempt)
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
		s = fmt.Sprintf("has waited for the first of %s", tasks(w.Members))
	case queue.WaitAnyOK:
		s = fmt.Sprintf("has waited for the first of %s that completes", tasks(w.Members))
	case queue.WaitNOfM:
		s = fmt.Sprintf("has waited for %d of %s to complete", w.Need, tasks(w.Members))
	case queue.WaitNSettled:
		s = fmt.Sprintf("has waited for %d of %s to end", w.Need, tasks(w.Members))
	case queue.WaitFailFast:
		s = fmt.Sprintf("has waited for all of %s, or the first that fails,", tasks(w.Members))
	case queue.WaitCollect:
		s = "has waited for " + nextOf(w.Members)
	default:
		s = fmt.Sprintf("has waited for all of %s", tasks(w.Members))
	}
	s += " since " + clockText(e.Since)
	if w.Because != "" {
		s += ", " + strconv.Quote(w.Because)
	}
	return s
}

// detail returns a further sentence about the state, or "".
func (e *Explanation) detail() string {
	switch e.Why {
	case WhyWaiting, WhyWaking:
		if w := e.Wait; w != nil && w.Mode != queue.WaitCollect {
			s := fmt.Sprintf("%d done, %d failed, ", w.OK, w.Bad)
			if neither := w.Settled - w.OK - w.Bad; neither > 0 {
				s += fmt.Sprintf("%d ended otherwise, ", neither)
			}
			return s + fmt.Sprintf("%d left.", w.Left)
		}
	case WhyHeld:
		s := "It was held at " + clockText(e.Since) + "."
		if e.ReleaseReason != "" {
			s += " Its last worker gave it back" + quotedReason(e.ReleaseReason) + "."
		}
		return s
	case WhyInLine:
		if e.ReleaseReason != "" {
			return "Its last worker gave it back" + quotedReason(e.ReleaseReason) + "." + e.givenBackText()
		}
		return strings.TrimSpace(e.givenBackText())
	case WhyGivenBack:
		return strings.TrimSpace(e.givenBackText())
	case WhyBackingOff:
		if e.LastError != "" {
			return "The last attempt failed" + quoted(e.LastError) + "."
		}
	case WhyRunning:
		return e.leaseText("given back")
	case WhyCancelling:
		return e.leaseText("CANCELLED")
	case WhyTimedOut, WhyOwnerEnded:
		switch {
		case e.Held == queue.HeldUnhandled:
			return "No live worker had a handler for its kind, so it was held."
		case e.Held == queue.HeldDiverged:
			return "No live worker could replay it, because its code had changed, so it was held."
		case !e.End.NeverStarted:
		case len(e.Warnings) > 0:
			return "It was never started."
		default:
			return "It was never started. Nothing is known to hold its queue now: other tasks may have been before it, or no worker served the queue then."
		}
	case WhyOverdue, WhyDoomed:
		return fmt.Sprintf("It will be %s at %s%s.", e.End.Status, clockText(e.End.At), e.endText())
	}
	return ""
}

// givenBackText returns a sentence with the number of times that workers gave the task back, "" if
// it is 0 or 1.
func (e *Explanation) givenBackText() string {
	if e.GivenBack < 2 {
		return ""
	}
	return fmt.Sprintf(" It was given back %d times.", e.GivenBack)
}

// leaseText returns a sentence about the expiry of the lease, "" if the bound of the task comes
// first. effect is what the expiry does, such as "given back".
func (e *Explanation) leaseText(effect string) string {
	expiry := e.Run.LeaseEnds
	if expiry.Before(e.Now) || e.Bound.Kind != BoundNone && !expiry.Before(e.Bound.At) {
		return ""
	}
	return "If that worker is gone, the task is " + effect + " at " + clockText(expiry) + "."
}

// endText describes the end of a task, in brackets.
func (e *Explanation) endText() string {
	var parts []string
	if e.End.Reason != "" {
		parts = append(parts, string(e.End.Reason))
	}
	if e.End.TimeoutType != "" {
		parts = append(parts, string(e.End.TimeoutType))
	}
	if e.End.Lag > 0 {
		parts = append(parts, "noticed "+e.End.Lag.String()+" later")
	}
	if e.End.By != "" {
		parts = append(parts, "with its owner "+e.End.By)
	}
	s := ""
	if len(parts) > 0 {
		s = " (" + strings.Join(parts, ", ") + ")"
	}
	if e.End.Error != "" {
		s += quoted(e.End.TimeoutType.ErrorText(e.End.Error))
	}
	return s
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return strconv.Itoa(n) + " tasks"
}

// nextOf describes the wait of an agent that collects the ends of its children. open is the number
// of live children.
func nextOf(open int) string {
	switch open {
	case 0:
		return "the next child to end (no child lives)"
	case 1:
		return "its last live child to end"
	}
	return fmt.Sprintf("the next of %d children to end", open)
}

func clockText(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// quoted returns a colon and the text in quotes, "" for an empty text.
func quoted(s string) string {
	if s == "" {
		return ""
	}
	return ": " + strconv.Quote(refusal.Clip(s))
}

// quotedReason is quoted for the reason of a release. The difference of a replay is whole, because its
// end is what differs.
func quotedReason(s string) string {
	if isDiverged(s) {
		return ": " + strconv.Quote(s)
	}
	return quoted(s)
}

// isDiverged reports whether an agent was given back because the code of its worker cannot replay it.
func isDiverged(reason string) bool { return strings.HasPrefix(reason, refusal.ErrDiverged.Error()) }

// quoteOdd returns a valid name unchanged, and any other text in quotes.
func quoteOdd(s string) string {
	if names.Valid(s, "._-:/") {
		return s
	}
	return strconv.Quote(refusal.Clip(s))
}
