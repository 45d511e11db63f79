package bounds

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
)

// An audit and an export of very many tasks do not delay other clients. A second, idle server shows how slow the
// machine is. The p99 of its PINGs is added to the limit of a PING, and twice its slowest PING to the limit of
// a command. Each ms of its p90 (0.2 ms on an idle machine) adds the time limit once more. Without CURFEW_LONG
// there are few tasks, and the test only shows that everything works.
func TestAnAuditAndAnExportOfManyTasksHoldNobodyUp(t *testing.T) {
	redistest.NoRace(t, "it measures time, and the detector slows it down")
	n := stages.Times(10_000, 20_000, 2_000_000)
	server := redistest.Start(t, "--slowlog-log-slower-than", "10000", "--slowlog-max-len", "1000")
	rdb, idle := server.Client(t), redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	for range n / 10_000 {
		receipts, err := q.EnqueueAll(t.Context(), slices.Repeat([]queue.Task{{Kind: "k", Payload: make([]byte, 100), Timeout: 24 * time.Hour}}, 10_000))
		if err != nil || receipts[0].Err != nil {
			t.Fatal(err, receipts[0].Err)
		}
	}
	for _, test := range []struct {
		name string
		most time.Duration // for 2,000,000 tasks
		run  func(ctx context.Context) error
	}{
		{"audit", 5 * time.Minute, func(ctx context.Context) error {
			found, err := inspect.Audit(ctx, q)
			if len(found) > 0 {
				t.Errorf("Audit returns %d findings, the first is %v", len(found), found[0])
			}
			return err
		}},
		{"export", 90 * time.Second, func(ctx context.Context) error { return inspect.ExportTo(ctx, q, io.Discard) }},
	} {
		measure := func(t *testing.T) (late []string) {
			if err := rdb.Do(t.Context(), "slowlog", "reset").Err(); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			stop := pinging(t, server.Client(t), idle)
			begun := time.Now()
			if err := test.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			took := time.Since(begun)
			beside, machine := stop()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			slow, err := rdb.SlowLogGet(t.Context(), -1).Result()
			if err != nil {
				t.Fatal(err)
			}
			var longest time.Duration
			var command string
			for _, s := range slow {
				if s.Duration > longest {
					longest, command = s.Duration, fmt.Sprintf("%.60v", s.Args)
				}
			}
			t.Logf("%d tasks in %v; PING p99 %v, of an idle server %v; %d commands over 10ms, the longest %v %s; a PING of an idle server took up to %v; %d MiB of memory",
				n, took, at(beside, 0.99), at(machine, 0.99), len(slow), longest, command, at(machine, 1), m.Sys>>20)
			if most := time.Duration(float64(test.most) * (1 + at(machine, 0.9).Seconds()*1000)); stages.Long() && took > most {
				late = append(late, fmt.Sprintf("the %s took %v, want at most %v", test.name, took, most))
			}
			if p99, most := at(beside, 0.99), 10*time.Millisecond+3*at(machine, 0.99); p99 > most { // who shares a busy core waits some times as long
				late = append(late, fmt.Sprintf("the p99 of PINGs during the %s is %v, want at most %v", test.name, p99, most))
			}
			if most := 10*time.Millisecond + 2*at(machine, 1); longest > most {
				late = append(late, fmt.Sprintf("a command took %v, want at most %v: %.100v", longest, most, slow))
			}
			if stages.Long() && m.Sys > uint64(n)*400 {
				t.Errorf("the process uses %d bytes of memory per task, want at most 400", m.Sys/uint64(n))
			}
			return late
		}
		t.Run(test.name, func(t *testing.T) { // one of three tries, since a shared machine can stop a process for longer
			var late []string
			for range 3 {
				if late = measure(t); len(late) == 0 {
					return
				}
			}
			t.Error(strings.Join(late, "; "))
		})
	}
}

// pinging pings two servers every 2 ms. stop ends that and returns the sorted round-trip times.
func pinging(t *testing.T, one, other *redis.Client) (stop func() (of, idle []time.Duration)) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var took [2][]time.Duration
	for i, rdb := range []*redis.Client{one, other} {
		group.Go(func() {
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				<-pace.C
				begun := time.Now()
				if rdb.Ping(ctx).Err() == nil {
					took[i] = append(took[i], time.Since(begun))
				}
			}
		})
	}
	return func() (of, idle []time.Duration) {
		cancel()
		group.Wait()
		for _, spans := range took {
			slices.Sort(spans)
		}
		return took[0], took[1]
	}
}

// at returns a quantile: the given part of the sorted durations is not longer.
func at(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(part*float64(len(sorted))), len(sorted)-1)]
}
