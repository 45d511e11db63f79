package worker

import (
	"context"
	"time"
)

const (
	blockFor  = time.Second             // one AwaitWork
	overrun   = 1500 * time.Millisecond // then look even if it has not returned
	crowdRest = 100 * time.Millisecond  // between looks while there is no slot to spare
)

// await waits for work while the lane has none, until none is wanted.
func (l *lane) await() {
	for ctx := l.w.wanting; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.idle:
		}
		if !l.spare() {
			// A token is for somebody who can use it. The look will wait for a slot.
			pause(ctx, crowdRest)
			l.look(false)
			continue
		}
		select {
		case <-l.awake: // of a call that had overrun
		default:
		}
		l.block(ctx)
		timer := time.NewTimer(overrun)
		select {
		case <-l.awake:
		case <-timer.C:
			// Own bound: a link that is half open holds the answer back for long.
			l.look(false)
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// spare tells whether to wait for a token: a slot is free, and the last answer did
// not promise work that it could not give.
func (l *lane) spare() bool {
	l.mu.Lock()
	barren := l.barren > 0
	l.mu.Unlock()
	return !barren && l.w.slots.anyFree()
}

// block has AwaitWork called, unless an earlier call is still under way.
func (l *lane) block(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.blocking || l.w.stopping.Load() {
		return
	}
	l.blocking = true
	l.w.errands.Go(func() {
		token, err := l.w.q.AwaitWork(ctx, l.partition, l.w.menu.names, blockFor)
		if err != nil && ctx.Err() == nil {
			l.w.complain(l.partition, "Waiting for work failed; the worker goes on trying", err)
			pause(ctx, l.backOff())
		}
		l.mu.Lock()
		l.blocking = false
		l.mu.Unlock()
		l.look(token)
		notify(l.awake)
		l.w.signal()
	})
}

// backOff is how long to wait after another failure: 50 ms, doubling to 1 s.
func (l *lane) backOff() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pause = min(max(2*l.pause, 50*time.Millisecond), time.Second)
	return l.pause
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
