package httpapi

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A silence ends a call after the configured time.
func TestASilenceEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{config: Config{Silence: 600 * time.Millisecond}}
		ctx, stop := s.silence(t.Context(), nil)
		defer stop()
		start := time.Now()
		<-ctx.Done()
		if took := time.Since(start); took != 600*time.Millisecond || context.Cause(ctx) != errAway {
			t.Errorf("after %v: %v, want errAway after 600ms", took, context.Cause(ctx))
		}
	})
}

// A process that gets no processor for a minute has been silent for a tick, and not Redis for a minute.
func TestAProcessThatWaitsForAProcessorDoesNotTakeRedisForSilent(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	ticks, over := make(chan time.Time), make(chan bool)
	go func() { over <- count(ctx, nil, 3, ticks) }()
	for i := range 2 {
		ticks <- time.Now().Add(time.Duration(i) * time.Minute)
	}
	select {
	case <-over:
		t.Error("two of three ticks end the silence")
	default:
	}
	ticks <- time.Now()
	if !<-over {
		t.Error("the third tick does not end the silence")
	}
	go func() { over <- count(ctx, nil, 3, ticks) }()
	stop()
	if <-over || !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("a silence is over although the call has returned")
	}
}

// pretended is a namespace on a Redis that replies until it hangs.
type pretended struct {
	*space
	hangs atomic.Bool
	asked atomic.Int64 // empty calls
}

func pretend(t *testing.T, shards int) *pretended {
	t.Cleanup(func() { time.Sleep(2 * time.Second) }) // sleeps: the clock of synctest; the goroutines that ask end
	s := &Server{config: Config{Silence: 600 * time.Millisecond}}
	r := &pretended{space: &space{server: s}}
	for range shards {
		var h *shard
		h = newShard(s, func(ctx context.Context) error {
			r.asked.Add(1)
			if r.hangs.Load() && h == r.shards[0] {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			h.replied()
			return nil
		})
		r.shards = append(r.shards, h)
	}
	return r
}

// Requests that are answered soon make no empty call, nor do slow ones while Redis replies to others. Many that wait share one, and none
// is made when they have ended.
func TestSlowRequestsShareAnEmptyCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pretend(t, 1)
		for range 100 {
			_, leave := r.watch(t.Context(), -1, false)
			time.Sleep(slowAfter - time.Millisecond) // sleeps: the clock of synctest
			leave()
		}
		if n := r.asked.Load(); n != 0 {
			t.Errorf("100 requests that are answered soon make %d empty calls", n)
		}
		var leaves []func()
		for range 1000 {
			ctx, leave := r.watch(t.Context(), -1, false)
			leaves = append(leaves, leave)
			context.AfterFunc(ctx, func() {
				if context.Cause(ctx) == errAway {
					t.Error("a request ends although Redis replies")
				}
			})
		}
		for range 100 { // other requests are answered
			time.Sleep(100 * time.Millisecond) // sleeps: the clock of synctest
			r.shards[0].replied()
		}
		if n := r.asked.Load(); n != 0 {
			t.Errorf("while Redis replies to others, %d empty calls are made", n)
		}
		time.Sleep(10 * time.Second) // sleeps: the clock of synctest
		synctest.Wait()              // for a call of this instant
		before := r.asked.Load()
		if before < 39 || before > 40 {
			t.Errorf("1,000 requests that wait for 10s make %d empty calls, want one in %v", before, slowAfter)
		}
		for _, leave := range leaves {
			leave()
		}
		time.Sleep(time.Minute) // sleeps: the clock of synctest
		if n := r.asked.Load() - before; n > 0 {
			t.Errorf("%d empty calls are made when no request waits", n)
		}
	})
}

// Redis hangs at any instant, before or after a request begins, and whether others wait or not. The request ends within 850 ms of the
// later of the two.
func TestARequestEndsSoonAfterRedisHangs(t *testing.T) {
	const soon = slowAfter + 600*time.Millisecond
	for _, others := range []bool{false, true} {
		for hangAt := time.Duration(0); hangAt < 2*time.Second; hangAt += 37 * time.Millisecond {
			for begin := time.Duration(0); begin < 2*time.Second; begin += 41 * time.Millisecond {
				synctest.Test(t, func(t *testing.T) {
					r := pretend(t, 1)
					r.shards[0].replied()
					time.AfterFunc(hangAt, func() { r.hangs.Store(true) })
					if others {
						_, leave := r.watch(t.Context(), -1, false)
						defer leave()
					}
					time.Sleep(begin) // sleeps: the clock of synctest
					start := time.Now()
					ctx, leave := r.watch(t.Context(), -1, false)
					defer leave()
					<-ctx.Done()
					took := time.Since(start) - max(0, hangAt-begin)
					// real time: the clock of synctest
					if took > soon || context.Cause(ctx) != errAway {
						t.Errorf("Redis hangs at %v: a request that begins at %v ends after %v, %v", hangAt, begin, took, context.Cause(ctx))
					}
				})
			}
		}
	}
}

// Redis replies to another call while an empty call is in line, and then hangs. The request ends as soon.
func TestARequestEndsSoonAfterTheLastReplyToAnother(t *testing.T) {
	const soon = slowAfter + 600*time.Millisecond
	for after := time.Millisecond; after < 600*time.Millisecond; after += 37 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			r := pretend(t, 1)
			r.hangs.Store(true)
			r.shards[0].replied()
			last := slowAfter + after // the empty call begins at slowAfter
			time.AfterFunc(last, r.shards[0].replied)
			start := time.Now()
			ctx, leave := r.watch(t.Context(), -1, false)
			defer leave()
			<-ctx.Done()
			// real time: the clock of synctest
			if took := time.Since(start) - last; took > soon || context.Cause(ctx) != errAway {
				t.Errorf("a reply %v after the empty call began, and no other: the request ends %v later, %v", after, took, context.Cause(ctx))
			}
		})
	}
}

// One shard of a cluster hangs. Requests that wait for another one go on, and those that may need all end.
func TestARequestForAnotherShardGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pretend(t, 3)
		r.hangs.Store(true)
		var causes []error
		for partition := -1; partition < 3; partition++ {
			ctx, leave := r.watch(t.Context(), partition, false)
			defer leave()
			time.Sleep(time.Second) // sleeps: the clock of synctest
			causes = append(causes, context.Cause(ctx))
		}
		if causes[0] != errAway || causes[1] != errAway || causes[2] != nil || causes[3] != nil {
			t.Errorf("the requests for all shards, the one that hangs and the others end with %v", causes)
		}
	})
}

// A reply to another call shows that Redis lives, although the empty call is in line. A reply of before the empty call shows nothing.
func TestAReplyToAnotherCallIsNoSilence(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := pretend(t, 1)
			r.hangs.Store(true)
			h := r.shards[0]
			h.replied()
			ctx, stop := r.server.silence(t.Context(), nil)
			defer stop()
			time.Sleep(time.Millisecond) // sleeps: the clock of synctest
			if after {
				time.AfterFunc(time.Millisecond, h.replied)
			}
			if err := h.reply(ctx); (err == nil) != after {
				t.Errorf("a reply after the empty call %v: %v", after, err)
			}
		})
	}
}

// A shard has become a replica. Changes that are slow end, and reads go on.
func TestChangesEndWhileRedisRefusesToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pretend(t, 2)
		requests := map[bool]context.Context{}
		for _, changes := range []bool{false, true} {
			ctx, leave := r.watch(t.Context(), -1, changes)
			defer leave()
			requests[changes] = ctx
		}
		for range 3 {
			r.shards[1].endSlow(true)
			time.Sleep(slowAfter) // sleeps: the clock of synctest
			synctest.Wait()
		}
		if read, change := context.Cause(requests[false]), context.Cause(requests[true]); read != nil || change != errAway {
			t.Errorf("a read ends with %v, and a change with %v", read, change)
		}
	})
}
