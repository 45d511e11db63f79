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

// listener is a reaper behind a proxy. ended receives a value for each timeout that it handles.
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

// listen starts the reaper and returns after its first sweep.
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

// lag enqueues a task with a timeout of 20 ms, and returns how late its end was detected.
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
		// PUBSUB NUMSUB shows when the reaper has subscribed. An earlier alarm is lost.
		await.Until(t, "the reaper has subscribed", func() bool { return l.Redis.PubSubNumSub(l.Context(), l.Key("alarm")).Val()[l.Key("alarm")] == 1 })
		var lags spans
		for range rounds(30) {
			lags = append(lags, l.lag())
		}
		t.Logf("lags with alarms: median %v, max %v of %d", lags.at(0.5), lags.at(1), len(lags))
		// Without the alarm the reaper notices a timeout at its next fall-back.
		if lags.at(0.5) > 100*time.Millisecond || lags.at(1) > 100*time.Millisecond+await.Stall {
			t.Errorf("lags with alarms: median %v, max %v, want at most 100ms, and once a stall of the machine", lags.at(0.5), lags.at(1))
		}
		l.account(l.ids)
	})

	t.Run("may be lost", func(t *testing.T) {
		l := newListener(t)
		held := l.proxy.Hold(faultproxy.Command("subscribe"))
		l.listen()
		held.Await(t)
		var lags spans
		for range rounds(6) {
			lags = append(lags, l.lag())
		}
		t.Logf("lags without alarms: median %v, max %v of %d", lags.at(0.5), lags.at(1), len(lags))
		if lags.at(1) > fallback+await.Stall {
			t.Errorf("the longest lag without alarms is %v, want about the fall-back of %v", lags.at(1), fallback)
		}
		if lags.at(0.5) < 100*time.Millisecond {
			t.Errorf("the median lag is %v, so the alarms were not lost", lags.at(0.5))
		}
		l.proxy.Release()
		await.Until(t, "alarms arrive again", func() bool { return l.lag() < 50*time.Millisecond })
		l.account(l.ids)
	})

	t.Run("may be missed by a disconnected subscriber", func(t *testing.T) {
		l := newListener(t)
		l.listen()
		l.lag()
		for range rounds(3) {
			l.proxy.CloseAll()
			if lag := l.lag(); lag > fallback+await.Stall {
				t.Errorf("the lag after the connections were closed is %v, want about the fall-back of %v", lag, fallback)
			}
		}
		await.Until(t, "alarms arrive again", func() bool { return l.lag() < 50*time.Millisecond })
		l.account(l.ids)
	})
}
