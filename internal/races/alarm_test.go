package races

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/faultproxy"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// listener is a reaper behind a proxy that tells when it ends a task.
type listener struct {
	*stage
	proxy *faultproxy.Proxy
	ended chan struct{}
	ids   []string
}

func newListener(t *testing.T) *listener {
	l := &listener{stage: newStage(t, redistest.Shared(t).Addr, queue.Config{}), ended: make(chan struct{}, 100)}
	l.proxy = faultproxy.Start(t, l.Addr)
	return l
}

// listen starts the reaper and returns when it rests.
func (l *listener) listen() {
	swept := make(chan struct{}, 1000)
	q := l.AnotherAt(l.proxy.Addr)
	l.Run(reaper.New(q, reaper.Config{Fallback: fallback, Observe: func(_ int, did reaper.Swept) {
		for range did.TimedOut {
			l.ended <- struct{}{}
		}
		select {
		case swept <- struct{}{}:
		default:
		}
	}}).Run)
	await.Receive(l.T, swept, "the reaper sweeps")
}

// lag is how long after its end a task of 20 ms is noticed.
func (l *listener) lag() time.Duration {
	l.Helper()
	ids := l.Enqueue(queue.Task{Kind: "k", Timeout: 20 * time.Millisecond})
	l.ids = append(l.ids, ids...)
	await.Receive(l.T, l.ended, "the task is ended")
	r := l.Record(ids[0])
	return r.DetectedAt.Sub(r.CompletedAt)
}

func TestAlarm(t *testing.T) {
	t.Run("wakes an idle reaper", func(t *testing.T) {
		l := newListener(t)
		l.listen()
		// PUBSUB NUMSUB tells when it listens; an alarm before that is lost.
		await.Until(t, "the reaper listens", func() bool { return l.Redis.PubSubNumSub(l.Context(), l.Key("alarm")).Val()[l.Key("alarm")] == 1 })
		var lags spans
		for range rounds(30) {
			lags = append(lags, l.lag())
		}
		t.Logf("noticed after its end: median %v, max %v of %d", lags.at(0.5), lags.at(1), len(lags))
		if lags.at(0.5) > 20*time.Millisecond || lags.at(1) > 100*time.Millisecond {
			t.Errorf("an end is noticed after %v (median), %v (max), want 20ms and 100ms", lags.at(0.5), lags.at(1))
		}
		l.account(l.ids)
	})

	t.Run("may be swallowed", func(t *testing.T) {
		l := newListener(t)
		held := l.proxy.Hold(faultproxy.Command("subscribe"))
		l.listen()
		held.Await(t)
		var lags spans
		for range rounds(6) {
			lags = append(lags, l.lag())
		}
		t.Logf("without alarms noticed after its end: median %v, max %v of %d", lags.at(0.5), lags.at(1), len(lags))
		if lags.at(1) > fallback+100*time.Millisecond {
			t.Errorf("without alarms an end is noticed after %v, want the fall-back, %v", lags.at(1), fallback)
		}
		if lags.at(0.5) < 100*time.Millisecond {
			t.Errorf("an end is noticed within %v, so the alarms were not swallowed", lags.at(0.5))
		}
		l.proxy.Release()
		await.Until(t, "alarms are heard again", func() bool { return l.lag() < 50*time.Millisecond })
		l.account(l.ids)
	})

	t.Run("may be missed by a subscriber that is cut off", func(t *testing.T) {
		l := newListener(t)
		l.listen()
		l.lag()
		for range rounds(3) {
			l.proxy.CloseAll()
			if lag := l.lag(); lag > fallback+100*time.Millisecond {
				t.Errorf("after its connections were cut a reaper notices an end after %v, want the fall-back, %v", lag, fallback)
			}
		}
		await.Until(t, "alarms are heard again", func() bool { return l.lag() < 50*time.Millisecond })
		l.account(l.ids)
	})
}
