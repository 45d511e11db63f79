package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long to wait for a measurement before it fails.
const patience = 5 * time.Minute

// countdown waits until something has happened n times.
type countdown struct {
	left atomic.Int64
	zero chan struct{}
}

func newCountdown(n int) *countdown {
	c := &countdown{zero: make(chan struct{})}
	c.left.Store(int64(n))
	return c
}

// one counts one more.
func (c *countdown) one() {
	if c.left.Add(-1) == 0 {
		close(c.zero)
	}
}

// wait returns nil when it has happened n times. It returns an error if one of failed has one
// first, if ctx ends, or after patience.
func (c *countdown) wait(ctx context.Context, failed ...<-chan error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %v", patience))
	defer cancel()
	first := make(chan error, len(failed))
	for _, f := range failed {
		go func() {
			select {
			case err := <-f:
				first <- err
			case <-ctx.Done():
			}
		}()
	}
	select {
	case <-c.zero:
		return nil
	case err := <-first:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%d more were expected: %w", c.left.Load(), context.Cause(ctx))
	}
}

// fromGoroutines makes the calls 0 to n-1 from several goroutines. Each makes the next call
// when its last one has returned. After the first error no call begins.
func fromGoroutines(n, goroutines int, call func(i int) error) error {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, goroutines)
	for range goroutines {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := call(int(i)); err != nil {
					next.Store(int64(n))
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}
