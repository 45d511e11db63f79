package agentwait

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

type clockKey struct{}

// WithClock has the agents under a context take Now from elsewhere than the clock of Redis.
// It is for tests whose clock stands still: curfewtest sets its own.
func WithClock(ctx context.Context, now func() time.Time) context.Context {
	if ctx == nil || now == nil {
		panic("agentwait: WithClock needs a context and a clock")
	}
	return context.WithValue(ctx, clockKey{}, now)
}

// clock is the time as it is.
func (a *Agent) clock() time.Time {
	if now, ok := a.Value(clockKey{}).(func() time.Time); ok {
		return now()
	}
	return a.job.ClaimedAt.Add(time.Since(a.job.ReceivedAt))
}

// Now is the time by the clock of Redis, and the same again in a replay.
func (a *Agent) Now() time.Time {
	now := a.given().clock().UnixMilli()
	if a.barred() != nil {
		return time.UnixMilli(now)
	}
	number, entry, ok := a.remembered()
	if !ok {
		a.record(number, fmt.Appendf(nil, "now %d", now))
	} else if _, err := fmt.Sscanf(entry, "now %d", &now); err != nil {
		a.diverged(what(entry), "a call of Now")
	}
	return time.UnixMilli(now)
}

// Rand is a source of random numbers that gives the same ones again in a replay.
func (a *Agent) Rand() *rand.Rand {
	a.given()
	s1, s2 := rand.Uint64(), rand.Uint64()
	if a.barred() != nil {
		return rand.New(rand.NewPCG(s1, s2))
	}
	number, entry, ok := a.remembered()
	if !ok {
		a.record(number, fmt.Appendf(nil, "rand %d %d", s1, s2))
	} else if _, err := fmt.Sscanf(entry, "rand %d %d", &s1, &s2); err != nil {
		a.diverged(what(entry), "a call of Rand")
	}
	return rand.New(rand.NewPCG(s1, s2))
}
