package claim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Settle reports how attempts ended and claims the next tasks in the same round trip. call
// identifies the report ([queue.NewCall]): a repeat with the same call changes nothing and returns the
// verdicts of the first. A call takes at most 500 outcomes. Send more than 4 MiB of results in
// several calls.
func (a Attempts) Settle(ctx context.Context, partition int, worker, call string, outcomes []queue.Outcome, ask Ask) (Reply, error) {
	if err := a.q.Ready(ctx); err != nil {
		return Reply{}, refusal.Failed("settle", "", err)
	}
	if err := names.CheckWorker(worker); err != nil {
		return Reply{}, refusal.Failed("settle", "", err)
	}
	if len(outcomes) > engine.MaxTasks {
		return Reply{}, refusal.Failed("settle", "", refusal.Invalid("outcomes", "are %d, the limit of a call is %d: make several calls", len(outcomes), engine.MaxTasks))
	}
	args := make([]any, 0, 3+8*len(outcomes)+4+2*len(ask.Quotas))
	args = append(args, worker, call, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		if err := checkOutcome(o, a.q.MaxBytes()); err != nil {
			return Reply{}, refusal.Failed("settle", o.ID, err)
		}
		args = appendOutcome(args, o)
	}
	if ask.N != 0 {
		if err := ask.check(); err != nil {
			return Reply{}, refusal.Failed("settle", "", err)
		}
		args = ask.append(args)
	}
	start := time.Now()
	reply, report, err := a.q.Engine().CallReported(ctx, partition, "settle", args...)
	answers, err := engine.List(reply, err, 3)
	if err != nil {
		return Reply{}, refusal.Failed("settle", "", err)
	}
	trip := Reply{Ended: len(report.TimedOut)}
	if trip.Verdicts, err = readVerdicts(answers[1], len(outcomes)); err == nil {
		err = trip.readClaims(partition, answers[0], answers[2])
	}
	a.traceReceive(ctx, start, trip.Claims)
	trip.Errors = a.q.Engine().Located("settle", answers[3:])
	return trip, refusal.Failed("settle", "", err)
}

func checkOutcome(o *queue.Outcome, maxBytes int) error {
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
	case "", queue.ClassError, queue.ClassFailed, queue.ClassTimeout, queue.ClassDeadline:
	case queue.ClassNoHandler, queue.ClassDiverged:
		if o.Verb != queue.Release {
			return refusal.Invalid("class", "%q is of release alone", o.Class)
		}
	default:
		return refusal.Invalid("class", "%q must be error, failed, timeout or deadline", refusal.Clip(string(o.Class)))
	}
	switch o.Verb {
	case queue.Complete, queue.Fail, queue.Release:
		return nil
	}
	return refusal.Invalid("verb", "%q must be complete, fail or release", refusal.Clip(string(o.Verb)))
}

func appendOutcome(args []any, o *queue.Outcome) []any {
	if o.Verb == queue.Complete {
		return append(args, o.ID, o.Epoch, string(o.Verb), o.Result)
	}
	class, code := o.Class, any("")
	if class == "" {
		class = queue.ClassError
	}
	if o.Code != 0 {
		code = o.Code
	}
	delay := any(o.Delay.Milliseconds())
	if o.Delay == 0 && o.Verb == queue.Fail {
		delay = ""
	}
	return append(args, o.ID, o.Epoch, string(o.Verb), o.Error, string(class), code, delay, expr.OneLine(o.Retry))
}

func readVerdicts(answer any, n int) ([]queue.Verdict, error) {
	words, err := engine.Elements(answer, nil)
	if err == nil && len(words) != n {
		err = fmt.Errorf("%d verdicts for %d outcomes", len(words), n)
	}
	if err != nil {
		return nil, err
	}
	verdicts := make([]queue.Verdict, n)
	for i, word := range words {
		if status, ok := word.(string); ok {
			verdicts[i] = queue.Verdict{Word: queue.VerdictOK, Status: queue.Status(status)}
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
func readVerdict(words []any) queue.Verdict {
	v := queue.Verdict{Word: queue.VerdictWord(engine.Text(words[0]))}
	switch {
	case v.Word == queue.VerdictLost && len(words) > 1:
		v.Status = queue.Status(engine.Text(words[1]))
	case v.Word == queue.VerdictInvalid && len(words) > 2:
		v.Why = engine.Text(words[1]) + " " + engine.Text(words[2])
	case len(words) > 1:
		v.Why = engine.Text(words[1])
	}
	return v
}
