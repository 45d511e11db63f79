package worker

import (
	"encoding/json"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/retryexpr"
)

// askRetry has the outcome of a failed attempt carry what the task's retry expression
// says of it. Of attempts that took too long the expression was asked when the task was
// created.
func (a *attempt) askRetry(result []byte) {
	c, o := &a.claim, &a.outcome
	if c.RetryExpression == "" || o.Verb != queue.Fail || o.Class == queue.ClassTimeout {
		return
	}
	failed := retryexpr.Attempt{Kind: c.Kind, Phase: "Error", Code: o.Code, Msg: o.Error}
	if o.Class == queue.ClassFailed {
		failed.Phase = "Failed"
	}
	if json.Unmarshal(result, &failed.Parameters) != nil {
		failed.Parameters = nil // what is no JSON object has no parameters
	}
	o.Retry = retryexpr.Verdict(c.Kind, c.RetryExpression, failed)
}
