package worker

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimit(t *testing.T) {
	t.Run("without a limit the context is the root itself, and nothing is allocated", func(t *testing.T) {
		root, stop := context.WithCancel(context.Background())
		defer stop()
		ctx, cancel := limit(root, bound{}, bound{cause: ErrTaskTimeout})
		cancel()
		if ctx != root || ctx.Err() != nil {
			t.Fatalf("limit = %v, want the root, not cancelled", ctx)
		}
		if _, ok := ctx.Deadline(); ok {
			t.Fatal("the context has a deadline")
		}
		allocs := testing.AllocsPerRun(1000, func() {
			_, cancel := limit(root, bound{}, bound{cause: ErrTaskTimeout})
			cancel()
		})
		if allocs != 0 {
			t.Fatalf("%v allocations a call, want 0", allocs)
		}
	})

	t.Run("the first of several limits ends the context, with its cause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			ctx, cancel := limit(context.Background(),
				bound{now.Add(3 * time.Second), ErrDeadline}, bound{now.Add(2 * time.Second), ErrAttemptTimeout}, bound{now.Add(time.Minute), ErrTaskTimeout})
			defer cancel()
			if at, _ := ctx.Deadline(); !at.Equal(now.Add(2 * time.Second)) {
				t.Fatalf("the deadline is in %v, want 2s", at.Sub(now))
			}
			<-ctx.Done()
			if after := time.Since(now); after != 2*time.Second || context.Cause(ctx) != ErrAttemptTimeout || ctx.Err() != context.DeadlineExceeded {
				t.Fatalf("the context ended after %v with cause %v, want 2s and %v", after, context.Cause(ctx), ErrAttemptTimeout)
			}
		})
	})

	t.Run("the end of the root ends the context before any limit", func(t *testing.T) {
		root, stop := context.WithCancelCause(context.Background())
		ctx, cancel := limit(root, bound{time.Now().Add(time.Hour), ErrDeadline})
		defer cancel()
		stop(ErrShutdown)
		if <-ctx.Done(); !errors.Is(context.Cause(ctx), ErrShutdown) {
			t.Fatalf("the cause is %v, want shutdown", context.Cause(ctx))
		}
	})

	t.Run("10,000 calls leave no timer and no goroutine", func(t *testing.T) {
		const calls = 10_000
		before := runtime.NumGoroutine()
		var freed atomic.Int64
		for range calls {
			// A timer that is left would keep its context, the context its root, and the root this witness.
			witness := new([64]byte)
			runtime.AddCleanup(witness, func(int) { freed.Add(1) }, 0)
			root := context.WithValue(context.Background(), infoKey{}, witness)
			_, cancel := limit(root, bound{time.Now().Add(time.Hour), ErrTaskTimeout})
			cancel()
		}
		for range 100 {
			if runtime.GC(); freed.Load() == calls {
				break
			}
		}
		if kept := calls - freed.Load(); kept > 0 {
			t.Errorf("%d timers are left", kept)
		}
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines, want %d as before", after, before)
		}
	})
}

func TestLocalKeepsTheTimeThatIsLeft(t *testing.T) {
	server := time.UnixMilli(1_800_000_000_000) // years away from the local clock
	received := time.Now()
	if got := local(server.Add(5*time.Second), server, received); !got.Equal(received.Add(5 * time.Second)) {
		t.Fatalf("5s are left by the server's clock, %v by the local clock", got.Sub(received))
	}
	if got := local(time.Time{}, server, received); !got.IsZero() {
		t.Fatalf("local of no deadline is %v, want zero", got)
	}
}
