package timing_test

import (
	"context"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/queue"
)

// A call returns soon after its context has ended, although Redis does not reply.
func TestACallEndsWithItsContext(t *testing.T) {
	const within, left = 200 * time.Millisecond, 100 * time.Millisecond
	server := redistest.Shared(t)
	scripts := faultproxy.Command("fcall", "eval", "evalsha")
	for _, test := range []struct {
		claim string
		rate  int // bytes a second; 0: no limit
		cut   func(*faultproxy.Proxy)
	}{
		{"no reply", 0, func(p *faultproxy.Proxy) { p.Hold(scripts) }},
		{"no connection", 0, func(p *faultproxy.Proxy) { p.Partition(true) }},
		{"a reply that arrives slowly", 200_000, func(*faultproxy.Proxy) {}},
	} {
		t.Run(test.claim, func(t *testing.T) {
			s := harness.New(t, server.Addr, queue.Config{})
			id := s.Enqueue(queue.Task{Kind: "k", Payload: make([]byte, 1<<20)})[0]
			addr := server.Addr
			if test.rate > 0 {
				addr, _ = faultproxy.Slow(t, addr, test.rate)
			}
			timing.Keep(t, server.Addr, within, func(planted bool) time.Duration {
				link := faultproxy.Start(t, addr)
				q := s.AnotherAt(link.Addr)
				test.cut(link)
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				if planted {
					ctx = context.WithoutCancel(ctx) // as if the call had a time of its own
				}
				done := make(chan error, 1)
				go func() { _, err := q.Get(ctx, id); done <- err }()
				lag := upTo(done, 20*within) - left
				link.CloseAll()
				return lag
			})
		})
	}
}

// A caller that waits for the result of a task gets it at the task's end.
func TestAResultArrivesAtOnce(t *testing.T) {
	const within = 100 * time.Millisecond
	s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
	timing.Keep(t, s.Addr, within, func(planted bool) time.Duration {
		link := faultproxy.Start(t, s.Addr)
		if planted {
			link.Hold(faultproxy.Command("subscribe"))
		}
		q := s.AnotherAt(link.Addr)
		lag := longest(5, within, func() time.Duration {
			id := s.Enqueue(queue.Task{Kind: "k", Promise: true})[0]
			done := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() { _, err := q.Result(ctx, id); done <- err }()
			await.Until(t, "the caller waits", func() bool { return s.Redis.PubSubNumSub(t.Context(), s.Key("ended")).Val()[s.Key("ended")] == 1 })
			if _, err := s.Q.Resolve(t.Context(), id, nil); err != nil {
				t.Fatal(err)
			}
			return upTo(done, 40*within)
		})
		link.Release()
		return lag
	})
}
