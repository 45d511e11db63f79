package bench

import (
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// The cost of idle workers and reapers grows less than their number.
func TestIdleFleetsAreCheap(t *testing.T) {
	redistest.NoRace(t, "it measures")
	for _, c := range []struct {
		name   string
		config IdleConfig
		calls  float64 // a second at the most
	}{
		{"100 workers", IdleConfig{Workers: 100, Partitions: 1}, 110},
		{"40 workers, 4 partitions", IdleConfig{Workers: 40, Partitions: 4}, 300},
		{"64 reapers", IdleConfig{Reapers: 64, Partitions: 1}, 20},
		{"200 workers that share a client, 4 partitions", IdleConfig{Workers: 200, Partitions: 4, Shared: true}, 220},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.config.For = 3 * time.Second
			rdb, calls := redistest.Start(t).Client(t), c.calls+1
			// A fleet that starts, or lacks a processor, makes more calls. One that always makes too many makes them each time.
			for try := 0; try < 5 && calls > c.calls; try++ {
				r, err := Idle(t.Context(), rdb, c.config)
				if err != nil {
					t.Fatal(err)
				}
				t.Log(r.Figures)
				calls = r.Value("calls")
			}
			if calls > c.calls {
				t.Errorf("%.0f calls a second, want at most %.0f", calls, c.calls)
			}
		})
	}
}

// These limits hold on a machine that does nothing else.
func TestIdleFleetsLeaveRedisIdle(t *testing.T) {
	if !harness.Long() {
		t.Log("only with CURFEW_LONG=1: it measures a processor for two minutes")
		return
	}
	for _, c := range []struct {
		name    string
		config  IdleConfig
		percent float64
	}{
		{"1,000 workers", IdleConfig{Workers: 1000, Partitions: 1}, 3},
		{"200 workers, 4 partitions", IdleConfig{Workers: 200, Partitions: 4}, 3},
		{"64 reapers, 4 partitions", IdleConfig{Reapers: 64, Partitions: 4}, 1},
		{"1,000 workers of one process, 4 partitions", IdleConfig{Workers: 1000, Partitions: 4, Shared: true}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.For = 20 * time.Second
			r, err := Idle(t.Context(), redistest.Start(t).Client(t), c.config)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Figures)
			if used := r.Value("Redis"); used > c.percent {
				t.Errorf("Redis uses %.2f %% of a processor, want at most %.0f", used, c.percent)
			}
		})
	}
}
