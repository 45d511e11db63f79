package bench

import (
	"context"
	"fmt"
	"slices"
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

// decrement counts one event, and releases wait after the last.
func (c *countdown) decrement() {
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

// lagList collects lags from handlers.
type lagList struct {
	mu   sync.Mutex
	lags []time.Duration
	all  *countdown
}

func newLagList(n int) *lagList { return &lagList{all: newCountdown(n)} }

// untilDone waits for the end of a handler's context, and adds how late it is.
func (l *lagList) untilDone(ctx context.Context, deadline time.Time) error {
	<-ctx.Done()
	l.add(time.Since(deadline))
	return ctx.Err()
}

func (l *lagList) add(lag time.Duration) {
	l.mu.Lock()
	l.lags = append(l.lags, lag)
	l.mu.Unlock()
	l.all.decrement()
}

// wait returns the lags when all have been added.
func (l *lagList) wait(ctx context.Context) ([]time.Duration, error) {
	err := l.all.wait(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lags), err
}

// lagParts are the quantiles that are reported for lags.
var lagParts = []struct {
	name string
	part float64
}{{"p50", 0.50}, {"p99", 0.99}, {"max", 1}}

// lagFigures returns the figures for lags of a name: dispatch_p50, dispatch_p99, dispatch_max.
func lagFigures(name, what string, can func(System) bool) []figure {
	var list []figure
	for _, p := range lagParts {
		list = append(list, figure{name + "_" + p.name, fmt.Sprintf("%s, %s", what, p.name), can})
	}
	return list
}

// lagValues returns the values of these figures, in ms.
func lagValues(lags []time.Duration) []float64 {
	values := make([]float64, len(lagParts))
	if len(lags) == 0 {
		return values
	}
	sorted := slices.Sorted(slices.Values(lags))
	for i, p := range lagParts {
		values[i] = float64(percentile(sorted, p.part).Microseconds()) / 1000
	}
	return values
}

// percentile returns the value at a part, from 0 to 1, of sorted lags.
func percentile(sorted []time.Duration, part float64) time.Duration {
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}

// count returns a number with its noun: "1 task", "20 tasks".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
