package worker

import (
	"context"
	"time"
)

// DeadlineNear returns a channel that is closed when the part of the task's time is over that its
// WarnAt names: finish what must be finished. The task goes on, and so does the context. Of a task
// without WarnAt, and outside of a handler, it returns nil: a channel on which nothing ever comes.
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
