package agentwait

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

type clockKey struct{}

// WithClock returns a context whose agents take Now from this function instead of the clock of
// Redis. It is for tests that control the time, such as those that use curfewtest. WithClock panics
// if an argument is nil.
func WithClock(ctx context.Context, now func() time.Time) context.Context {
	if ctx == nil || now == nil {
		panic("agentwait: WithClock needs a context and a clock")
	}
	return context.WithValue(ctx, clockKey{}, now)
}

// clock returns the current time.
func (a *Agent) clock() time.Time {
	if now, ok := a.Value(clockKey{}).(func() time.Time); ok {
		return now()
	}
	return a.job.ClaimedAt.Add(time.Since(a.job.ReceivedAt))
}

// Now returns the time by the clock of Redis, in ms. A replay returns the same time.
func (a *Agent) Now() time.Time {
	now := a.mustAgent().clock().UnixMilli()
	if a.stopped() != nil {
		return time.UnixMilli(now)
	}
	number, entry, ok := a.nextEntry()
	if !ok {
		a.record(number, fmt.Appendf(nil, "now %d", now))
	} else if _, err := fmt.Sscanf(entry, "now %d", &now); err != nil {
		a.diverged(describeEntry(entry), "a call of Now")
	}
	return time.UnixMilli(now)
}

// Rand returns a source of random numbers. In a replay it returns the same numbers.
func (a *Agent) Rand() *rand.Rand {
	a.mustAgent()
	s1, s2 := rand.Uint64(), rand.Uint64()
	if a.stopped() != nil {
		return rand.New(rand.NewPCG(s1, s2))
	}
	number, entry, ok := a.nextEntry()
	if !ok {
		a.record(number, fmt.Appendf(nil, "rand %d %d", s1, s2))
	} else if _, err := fmt.Sscanf(entry, "rand %d %d", &s1, &s2); err != nil {
		a.diverged(describeEntry(entry), "a call of Rand")
	}
	return rand.New(rand.NewPCG(s1, s2))
}
