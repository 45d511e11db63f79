package inspect

import (
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// boundText returns a sentence about Bound, and about EndsBy if it differs.
func (e *Explanation) boundText() string {
	switch e.Bound.Kind {
	case BoundFinal:
		switch {
		case !e.End.Goes.IsZero():
			return "Its record is removed at " + clockText(e.End.Goes) + "."
		case e.End.KeptBy != "":
			return "Its record is kept while " + e.End.KeptBy + " lives."
		}
		return ""
	case BoundDecided:
		if e.Why == WhyOverdue || e.Why == WhyDoomed {
			return ""
		}
		if e.Bound.Task != e.ID {
			return "That is decided by " + e.Bound.Task + ", which is over" + e.endsText()
		}
		return "That is decided" + e.endsText()
	case BoundNone:
		for _, w := range e.Warnings {
			if w.Word == WarnNoBound {
				return capital(w.Text) + "."
			}
		}
	}
	subject := "This ends"
	switch e.Bound.Kind {
	case BoundStart:
		return "It gets in line at " + clockText(e.Bound.At) + e.leftText() + e.endsText()
	case BoundTimer:
		if e.Why == WhyTimer {
			return "It completes at " + clockText(e.Bound.At) + e.leftText() + "."
		}
	}
	if e.Why == WhyWaiting {
		subject = "The wait ends"
	}
	return fmt.Sprintf("%s no later than %s (%s)%s%s", subject, clockText(e.Bound.At), e.Bound.reason(e.ID), e.leftText(), e.endsText())
}

func (e *Explanation) leftText() string {
	if e.Bound.Left <= 0 {
		return ", now"
	}
	return ", " + e.Bound.Left.String() + " from now"
}

// endsText returns the rest of the sentence: about EndsBy if it differs from Bound, otherwise a full
// stop.
func (e *Explanation) endsText() string {
	switch {
	case e.EndsBy == e.Bound || e.Why == WhyBroken:
		return "."
	case e.EndsBy.Kind == BoundNone && e.Bound.Kind == BoundStart:
		return "; after that nothing bounds it."
	case e.EndsBy.Kind == BoundNone:
		return "; the task itself has no deadline."
	}
	return fmt.Sprintf("; the task itself ends no later than %s (%s).", clockText(e.EndsBy.At), e.EndsBy.reason(e.ID))
}

// reason describes the instant of a bound for the explanation of the task asked.
func (b Bound) reason(asked string) string {
	whose := "its "
	if b.Task != asked {
		whose = "task " + b.Task + ", its "
	}
	switch b.Kind {
	case BoundDeadline:
		return whose + "deadline"
	case BoundOwner:
		if b.Task != asked && strings.HasPrefix(asked, b.Task+".") {
			return "the deadline of its owner " + b.Task
		}
		return whose + "owner's deadline"
	case BoundQueue:
		return "the limit of its line"
	case BoundAttempt:
		return "the limit of its attempt"
	case BoundWait:
		if b.Task != asked {
			return "the limit of the wait, which begins no later than the end of " + b.Task
		}
		return "the limit of the wait"
	case BoundPatience:
		return "the wait's patience with " + b.Task
	case BoundGrace:
		return whose + "grace"
	case BoundTimer:
		return whose + "time as a timer"
	case BoundDecided:
		return "task " + b.Task + ", which is over"
	}
	return string(b.Kind)
}

func (e *Explanation) warn(word WarningWord, text string, about ...string) {
	w := Warning{Word: word, Text: text, Tasks: about}
	if n := len(about); n > 10 {
		w.Tasks, w.More = about[:10], n-10
	}
	e.Warnings = append(e.Warnings, w)
}

// warnNoBound warns that there is no bound, with advice. unbounded holds the members of the wait
// that have no bound.
func (e *Explanation) warnNoBound(unbounded []string) {
	advice := "give such tasks a Timeout"
	switch {
	case e.Why == WhyBroken:
		e.warn(WarnNoBound, "no bound: this can wait without limit")
		return
	case e.Why == WhyInLine:
		advice = "give such tasks a Timeout or a QueueTimeout"
	case e.Why == WhyRunning:
		e.warn(WarnNoBound, "no bound: this can run as long as its worker lives; give such tasks a Timeout or an AttemptTimeout")
		return
	case e.Wait != nil && (e.Wait.LimitAfter > 0 || e.Wait.Mode == queue.WaitCollect) && len(unbounded) > 0:
		advice = "nothing bounds " + firstThree(unbounded) + "; give one of them or the agent a time limit"
	case len(unbounded) > 0:
		advice = "nothing bounds " + firstThree(unbounded) + "; give them, the wait or the agent a time limit"
	}
	e.warn(WarnNoBound, "no bound: this can wait without limit; "+advice, unbounded...)
}

// firstThree lists the first three ids, and the number of the rest.
func firstThree(ids []string) string {
	const n = 3
	if len(ids) <= n {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:n], ", "), len(ids)-n)
}
