package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
)

// traced returns the attributes of the attempt's task for its spans.
func (a *attempt) traced() spans.Task {
	return spans.Task{ID: a.claim.ID, Kind: a.claim.Kind, Queue: a.claim.Queue, Headers: a.claim.Headers}
}

// trace starts the span of the attempt, and returns the handler's context with it.
func (a *attempt) trace(ctx context.Context) context.Context {
	tracer := a.partition.w.q.Tracer()
	if tracer == nil {
		return ctx
	}
	ctx, a.span = tracer.Process(ctx, a.traced(), spans.Attempt{Number: a.claim.Attempt(), Deadline: a.claim.Deadline})
	return ctx
}

// traceEnd ends the span of the attempt. cause is the cause of the handler's context, nil if the
// context had not ended.
func (a *attempt) traceEnd(cause error) {
	if a.span == nil {
		return
	}
	o := &a.outcome
	typ, description := "", o.Error
	switch {
	case o.Verb == queue.Complete:
	case o.Verb == queue.Fail:
		typ = string(o.Class)
		if typ == "" {
			typ = string(queue.ClassError)
		}
	case cause != nil:
		typ, description = causeType(cause), cause.Error()
	}
	a.span.Processed(typ, description)
}

// causeType returns the type of the error that ended the context of a handler.
func causeType(cause error) string {
	switch {
	case errors.Is(cause, ErrTimeout):
		return "timeout"
	case errors.Is(cause, ErrCancelled):
		return "cancelled"
	case errors.Is(cause, ErrClaimLost):
		return "claim_lost"
	}
	return "shutdown"
}

// traceReport makes the span of the attempt's report, which was sent at this instant. err is the
// error of the call.
func (a *attempt) traceReport(sent time.Time, v queue.Verdict, err error) {
	if a.span == nil {
		return
	}
	if err == nil && !v.Accepted() {
		err = fmt.Errorf("the outcome was refused: %s %s %s", v.Word, v.Status, v.Why)
	}
	a.span.Settle(sent, a.traced(), a.outcome.Verb == queue.Complete, err)
}
