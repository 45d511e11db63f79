package worker

import (
	"context"
	"time"
)

// DeadlineNear returns a channel that is closed at the task's WarnAt, so that the handler can finish in
// time. The task and the context go on. It returns nil, a channel that is never ready, for a task
// without WarnAt and outside of a handler.
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
