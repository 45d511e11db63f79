package worker

import (
	"encoding/json"

	"github.com/curfew-dev/curfew/internal/expr"
	"github.com/curfew-dev/curfew/queue"
)

// evaluateRetry evaluates the task's retry expression for a failed attempt, and stores the result in
// the outcome. For a timeout the enqueue has evaluated the expression already.
func (a *attempt) evaluateRetry(result []byte) {
	c, o := &a.claim, &a.outcome
	if c.RetryExpression == "" || o.Verb != queue.Fail || o.Class == queue.ClassTimeout || o.Class == queue.ClassDeadline {
		return
	}
	failed := expr.Attempt{Kind: c.Kind, Phase: "Error", Code: o.Code, Msg: o.Error}
	if o.Class == queue.ClassFailed {
		failed.Phase = "Failed"
	}
	if json.Unmarshal(result, &failed.Parameters) != nil {
		failed.Parameters = nil // only a JSON object has parameters
	}
	o.Retry = expr.Verdict(c.Kind, c.RetryExpression, failed)
}
