package worker

import (
	"context"
	"time"
)

// DeadlineNear returns a channel that is closed at the task's WarnAt, so that the handler can finish
// before the deadline. The task and the context continue. DeadlineNear returns nil, a channel that is
// never ready, if the task has no WarnAt or ctx is not the context of a handler. It panics if ctx is
// nil.
func DeadlineNear(ctx context.Context) <-chan struct{} {
	if ctx == nil {
		panic("worker: DeadlineNear needs the context of the handler")
	}
	a, ok := ctx.Value(infoKey{}).(*attempt)
	if !ok || a.claim.WarnAt.IsZero() {
		return nil
	}
	near := make(chan struct{})
	timer := time.AfterFunc(time.Until(local(a.claim.WarnAt, a.claim.Now, a.received)), func() { close(near) })
	context.AfterFunc(a.base, func() { timer.Stop() })
	return near
}
