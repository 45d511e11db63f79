package httpapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A silence ends a call after the configured time.
func TestASilenceEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{config: Config{Silence: 600 * time.Millisecond}}
		ctx, stop := s.silence(t.Context())
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
	go func() { over <- count(ctx, 3, ticks) }()
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
	go func() { over <- count(ctx, 3, ticks) }()
	stop()
	if <-over || !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("a silence is over although the call has returned")
	}
}
