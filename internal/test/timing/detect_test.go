package timing_test

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// fallback is the default of reaper.Config.Fallback.
const fallback = 500 * time.Millisecond

// upTo returns how long c takes to receive, or limit if that is shorter: a planted delay need not be waited for.
func upTo[T any](c <-chan T, limit time.Duration) time.Duration {
	start := time.Now()
	select {
	case <-c:
	case <-time.After(limit):
	}
	return time.Since(start)
}

// longest returns the longest of up to n lags. It stops after one that is longer than within, which decides the sample.
func longest(n int, within time.Duration, lag func() time.Duration) (most time.Duration) {
	for range n {
		if most = max(most, lag()); most > within {
			break
		}
	}
	return most
}

// listener is a reaper behind a proxy.
type listener struct {
	*harness.Stage
	proxy *faultproxy.Proxy
	stop  func()
}

// listen starts a reaper, and returns after its first sweep. A deaf reaper gets no alarms: the replies to its subscription are held.
func listen(t *testing.T, fallback time.Duration, deaf bool) *listener {
	t.Helper()
	l := &listener{Stage: harness.New(t, redistest.Shared(t).Addr, queue.Config{})}
	l.proxy = faultproxy.Start(t, l.Addr)
	if deaf {
		l.proxy.Hold(faultproxy.Command("subscribe"))
	}
	swept := make(chan struct{}, 1000)
	l.stop = l.Run(reaper.New(l.AnotherAt(l.proxy.Addr), reaper.Config{Fallback: fallback, Observe: func(int, reaper.Swept) {
		select {
		case swept <- struct{}{}:
		default:
		}
	}}).Run)
	await.Receive(t, swept, "the reaper sweeps")
	if !deaf {
		// An alarm from before the subscription is lost.
		await.Until(t, "the reaper has subscribed", func() bool { return l.Redis.PubSubNumSub(t.Context(), l.Key("alarm")).Val()[l.Key("alarm")] == 1 })
	}
	return l
}

// lag enqueues a task with a timeout of 20 ms, and returns how late its end was detected.
func (l *listener) lag() time.Duration {
	l.Helper()
	r := l.Ended(l.Enqueue(queue.Task{Kind: "k", Timeout: 20 * time.Millisecond})[0])
	return r.DetectedAt.Sub(r.CompletedAt)
}

// close stops the reaper.
func (l *listener) close() {
	l.proxy.Release()
	l.stop()
}

func TestAnAlarmWakesAnIdleReaper(t *testing.T) {
	const within = 100 * time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		l := listen(t, map[bool]time.Duration{false: fallback, true: 2 * time.Second}[planted], planted)
		defer l.close()
		return longest(10, within, l.lag)
	})
}

func TestALostAlarmCostsTheFallback(t *testing.T) {
	const within = fallback + 200*time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		l := listen(t, map[bool]time.Duration{false: fallback, true: 5 * time.Second}[planted], true)
		defer l.close()
		return longest(3, within, l.lag)
	})
}

// A reaper that dies keeps its turn for two fall-backs. At the next instant of the line another one takes it.
func TestAnotherReaperTakesTheTurn(t *testing.T) {
	const within = 3*fallback + 200*time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
		link := faultproxy.Start(t, s.Addr)
		slow := map[bool]time.Duration{false: fallback, true: time.Minute}[planted]
		swept, turns := make(chan bool, 1000), make(chan struct{}, 1000)
		run := func(q *queue.Queue, observe func(reaper.Swept)) (stop func()) {
			return s.Run(reaper.New(q, reaper.Config{Fallback: slow, Observe: func(_ int, did reaper.Swept) { observe(did) }}).Run)
		}
		first := run(s.AnotherAt(link.Addr), func(did reaper.Swept) { swept <- did.Turn })
		await.Receive(t, swept, "the first reaper has the turn")
		second := run(s.Another(), func(did reaper.Swept) {
			if swept <- did.Turn; did.Turn {
				turns <- struct{}{}
			}
		})
		for await.Receive(t, swept, "the second reaper checks") {
		}
		link.Partition(true)
		lag := upTo(turns, 3*within)
		link.Partition(false)
		first()
		second()
		return lag
	})
}

// The reapers without the turn check it one after the other, in the order of a line. Most of them die, and with them the reaper that
// has the turn. The next one that lives ends what is due: the line has an instant every 125 ms.
func TestMostReapersDieTogether(t *testing.T) {
	const dead, alive = 6, 2
	const within = fallback + (dead+alive)*fallback/4 + 500*time.Millisecond
	timing.Keep(t, redistest.Shared(t).Addr, within, func(planted bool) time.Duration {
		s := harness.New(t, redistest.Shared(t).Addr, queue.Config{})
		link := faultproxy.Start(t, s.Addr)
		config := reaper.Config{Fallback: fallback}
		if planted {
			config.Fallback = time.Minute
		}
		ended, swept := make(chan struct{}, 100), make(chan struct{}, 1000)
		config.Observe = func(_ int, did reaper.Swept) {
			swept <- struct{}{}
			for range did.TimedOut {
				ended <- struct{}{}
			}
		}
		var stops []func()
		for i := range dead + alive {
			q := s.Another()
			if i < dead {
				q = s.AnotherAt(link.Addr)
			}
			stops = append(stops, s.Run(reaper.New(q, config).Run))
			await.Receive(t, swept, "each reaper has its place in the line, and the first has the turn")
		}
		link.Partition(true)
		s.Enqueue(queue.Task{Kind: "k", Timeout: 50 * time.Millisecond})
		lag := upTo(ended, 3*within) - 50*time.Millisecond
		link.Partition(false)
		for _, stop := range stops {
			stop()
		}
		return lag
	})
}

// A reaper sweeps about a second after Redis is back.
func TestAReaperSweepsAfterAnOutage(t *testing.T) {
	const within, outage = 1500 * time.Millisecond, time.Second
	server := redistest.Start(t, "--appendonly", "yes")
	s := harness.New(t, server.Addr, queue.Config{})
	timing.Keep(t, server.Addr, within, func(planted bool) time.Duration {
		link := faultproxy.Start(t, server.Addr)
		swept := make(chan struct{}, 1000)
		stop := s.Run(reaper.New(s.AnotherAt(link.Addr), reaper.Config{Observe: func(int, reaper.Swept) { swept <- struct{}{} }}).Run)
		await.Receive(t, swept, "the reaper sweeps")
		server.Kill()
		harness.Pass(outage)
		if planted {
			link.Say("-LOADING Redis is loading the dataset in memory")
		}
		server.Restart(t)
		for len(swept) > 0 {
			<-swept
		}
		lag := upTo(swept, 3*within)
		link.Say("")
		stop()
		return lag
	})
}
