package worker

import (
	"context"
	"time"
)

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// longer returns the pause after a further failure: 50 ms at first, when delay is 0, and then twice
// the delay, up to 1 s.
func longer(delay time.Duration) time.Duration {
	return min(max(2*delay, 50*time.Millisecond), time.Second)
}

// notify signals a channel that has room for one signal. It does not block, because a signal that is
// already there is enough.
func notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
