package timing

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// tick is the time between two beats of the pulse.
const tick = time.Millisecond

// pulse records how late a timer and a PING are while a test measures something else.
type pulse struct {
	longest time.Duration // the latest beat
	lost    time.Duration // the sum of what beats were late, beyond a tick each
	elapsed time.Duration
}

// beat adds a beat that was late by late.
func (p *pulse) beat(late time.Duration) {
	p.longest = max(p.longest, late)
	p.lost += max(late-tick, 0)
}

// share returns the part of the time in which the pulse did not run.
func (p pulse) share() float64 { return float64(p.lost) / float64(max(p.elapsed, tick)) }

// running is a pulse that a goroutine measures.
type running struct {
	stop   context.CancelFunc
	result chan pulse
}

// begin starts a pulse. Without rdb, it has timers only.
func begin(rdb *redis.Client) running {
	ctx, stop := context.WithCancel(context.Background())
	r := running{stop, make(chan pulse, 1)}
	ready := make(chan struct{})
	go func() {
		var p pulse
		if rdb != nil {
			rdb.Ping(ctx) // connects
		}
		close(ready)
		start := time.Now()
		for ctx.Err() == nil {
			begun := time.Now()
			<-time.After(tick)
			late := time.Since(begun) - tick
			if rdb != nil && rdb.Ping(ctx).Err() == nil { // a server that is down is not late
				late = time.Since(begun) - tick
			}
			p.beat(late)
		}
		p.elapsed = time.Since(start)
		r.result <- p
	}()
	<-ready
	return r
}

// end stops the pulse, and returns it.
func (r running) end() pulse {
	r.stop()
	return <-r.result
}
