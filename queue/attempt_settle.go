package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/refusal"
)

// Verb is the worker's report of an attempt's end.
type Verb string

// The verbs of an [Outcome].
const (
	Complete Verb = "complete"
	Fail     Verb = "fail"
	Release  Verb = "release" // the task is given back, and no retry is used
)

// Outcome is the end of an attempt.
type Outcome struct {
	ID     string
	Epoch  int64
	Verb   Verb
	Result []byte        // of Complete
	Error  string        // of Fail; of Release: why the task is given back, of which 1024 bytes are kept
	Class  Class         // of Fail: ClassError if empty; of Release: ClassNoHandler or empty
	Code   int           // of Fail: an exit code, 0 for none
	Delay  time.Duration // of Fail and Release: the time until the task can be fetched again; of Fail: 0 is the task's back-off
	// Retry is the result of the task's retry expression for a failed attempt: "retry", "fail", or
	// "fail: " and why the expression could not be evaluated. "" for a task without an expression.
	Retry string
}

// Verdict is the reply to an [Outcome]. After Fail, the status PENDING means that the task will be
// retried. With VerdictLost, Status is the task's present status: another worker runs it, it waits,
// or it has ended.
type Verdict struct {
	Word   VerdictWord
	Status Status // of VerdictOK and VerdictLost
	Why    string // of VerdictBroken and VerdictInvalid
}

// Accepted reports whether the outcome was accepted.
func (v Verdict) Accepted() bool { return v.Word == VerdictOK }

// Settle reports how attempts ended and claims the next tasks in the same round trip. call
// identifies the report (NewCall): a repeat with the same call changes nothing and returns the
// verdicts of the first. A call takes at most 500 outcomes. Send more than 4 MiB of results in
// several calls.
func (a Attempts) Settle(ctx context.Context, partition int, worker, call string, outcomes []Outcome, ask Ask) (Reply, error) {
	if err := a.q.ready(ctx); err != nil {
		return Reply{}, refusal.Failed("settle", "", err)
	}
	if err := checkWorker(worker); err != nil {
		return Reply{}, refusal.Failed("settle", "", err)
	}
	if len(outcomes) > maxList {
		return Reply{}, refusal.Failed("settle", "", refusal.Invalid("outcomes", "are %d, the limit of a call is %d: make several calls", len(outcomes), maxList))
	}
	args := make([]any, 0, 3+8*len(outcomes)+4+2*len(ask.Quotas))
	args = append(args, worker, call, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if err := o.check(a.q.config.MaxBytes); err != nil {
			return Reply{}, refusal.Failed("settle", o.ID, err)
		}
		args = o.append(args)
	}
	if ask.N != 0 {
		if err := ask.check(); err != nil {
			return Reply{}, refusal.Failed("settle", "", err)
		}
		args = ask.append(args)
	}
	start := time.Now()
	reply, report, err := a.q.engine.CallReported(ctx, partition, "settle", args...)
	answers, err := engine.List(reply, err, 3)
	if err != nil {
		return Reply{}, refusal.Failed("settle", "", err)
	}
	trip := Reply{Ended: len(report.TimedOut)}
	if trip.Verdicts, err = readVerdicts(answers[1], len(outcomes)); err == nil {
		err = trip.readClaims(partition, answers[0], answers[2])
	}
	a.q.traceReceive(ctx, start, trip.Claims)
	trip.Errors = a.q.engine.Located("settle", answers[3:])
	return trip, refusal.Failed("settle", "", err)
}

func (o *Outcome) check(maxBytes int) error {
	if len(o.Result) > maxBytes {
		return refusal.Invalid("result", "has %d bytes, the limit is %d: store it elsewhere and return a reference, or raise Config.MaxBytes", len(o.Result), maxBytes)
	}
	if len(o.Error) > maxBytes {
		return refusal.Invalid("error", "has %d bytes, the limit is %d", len(o.Error), maxBytes)
	}
	if len(o.Retry) > 1024 {
		return refusal.Invalid("retry", "has %d bytes, the limit is 1024", len(o.Retry))
	}
	if reason, failed := strings.CutPrefix(o.Retry, "fail: "); o.Retry != "" && o.Retry != "retry" && o.Retry != "fail" && (!failed || reason == "") {
		return refusal.Invalid("retry", "%q must be empty, retry, fail, or fail: with a reason", refusal.Clip(o.Retry))
	}
	if o.Delay < 0 {
		return refusal.Invalid("delay", "%v must not be negative", o.Delay)
	}
	switch o.Class {
	case "", ClassError, ClassFailed, ClassTimeout, ClassDeadline:
	case ClassNoHandler:
		if o.Verb != Release {
			return refusal.Invalid("class", "%q is of release alone", o.Class)
		}
	default:
		return refusal.Invalid("class", "%q must be error, failed, timeout or deadline", refusal.Clip(string(o.Class)))
	}
	switch o.Verb {
	case Complete, Fail, Release:
		return nil
	}
	return refusal.Invalid("verb", "%q must be complete, fail or release", refusal.Clip(string(o.Verb)))
}

func (o *Outcome) append(args []any) []any {
	if o.Verb == Complete {
		return append(args, o.ID, o.Epoch, string(o.Verb), o.Result)
	}
	class, code := o.Class, any("")
	if class == "" {
		class = ClassError
	}
	if o.Code != 0 {
		code = o.Code
	}
	delay := any(o.Delay.Milliseconds())
	if o.Delay == 0 && o.Verb == Fail {
		delay = ""
	}
	return append(args, o.ID, o.Epoch, string(o.Verb), o.Error, string(class), code, delay, expr.OneLine(o.Retry))
}

func readVerdicts(answer any, n int) ([]Verdict, error) {
	words, err := engine.Elements(answer, nil)
	if err == nil && len(words) != n {
		err = fmt.Errorf("%d verdicts for %d outcomes", len(words), n)
	}
	if err != nil {
		return nil, err
	}
	verdicts := make([]Verdict, n)
	for i, word := range words {
		if status, ok := word.(string); ok {
			verdicts[i] = Verdict{Word: VerdictOK, Status: Status(status)}
			continue
		}
		w, err := engine.List(word, nil, 1)
		if err != nil {
			return nil, err
		}
		verdicts[i] = readVerdict(w)
	}
	return verdicts, nil
}

// readVerdict reads a verdict that is not just a status: a word and its values.
func readVerdict(words []any) Verdict {
	v := Verdict{Word: VerdictWord(engine.Text(words[0]))}
	switch {
	case v.Word == VerdictLost && len(words) > 1:
		v.Status = Status(engine.Text(words[1]))
	case v.Word == VerdictInvalid && len(words) > 2:
		v.Why = engine.Text(words[1]) + " " + engine.Text(words[2])
	case len(words) > 1:
		v.Why = engine.Text(words[1])
	}
	return v
}
