package bench

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// The cost of idle workers and reapers grows less than their number.
func TestIdleFleetsAreCheap(t *testing.T) {
	redistest.NoRace(t, "it measures")
	for _, c := range []struct {
		name   string
		config idleConfig
		calls  float64 // a second at the most
	}{
		{"100 workers", idleConfig{Workers: 100, Partitions: 1}, 110},
		{"40 workers, 4 partitions", idleConfig{Workers: 40, Partitions: 4}, 300},
		{"64 reapers", idleConfig{Reapers: 64, Partitions: 1}, 20},
		{"200 workers that share a client, 4 partitions", idleConfig{Workers: 200, Partitions: 4, Shared: true}, 220},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.config.For = 3 * time.Second
			rdb, calls := redistest.Start(t).Client(t), c.calls+1
			// A fleet that starts, or lacks a processor, makes more calls. One that always makes too many makes them each time.
			for try := 0; try < 5 && calls > c.calls; try++ {
				r, err := measureIdle(t.Context(), rdb, c.config)
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
		config  idleConfig
		percent float64
	}{
		{"1,000 workers", idleConfig{Workers: 1000, Partitions: 1}, 3},
		{"200 workers, 4 partitions", idleConfig{Workers: 200, Partitions: 4}, 3},
		{"64 reapers, 4 partitions", idleConfig{Reapers: 64, Partitions: 4}, 1},
		{"1,000 workers of one process, 4 partitions", idleConfig{Workers: 1000, Partitions: 4, Shared: true}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.For = 20 * time.Second
			r, err := measureIdle(t.Context(), redistest.Start(t).Client(t), c.config)
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

// startFor is the longest time until all idle workers have a lease.
const startFor = 90 * time.Second

// idleConfig says how many workers and reapers wait for work while measureIdle measures.
type idleConfig struct {
	Workers, Reapers, Partitions int
	// Shared makes all of them use one client. Otherwise each has its own client, as if it
	// were a process.
	Shared bool
	// For is how long to measure.
	For time.Duration
}

// measureIdle measures the cost of idle workers and reapers: how much of a processor Redis and this
// process use, and how many scripts and blocking calls Redis runs in a second. It also reports
// the number of connections, and how long all workers took to get a lease.
func measureIdle(ctx context.Context, rdb redis.UniversalClient, c idleConfig) (Report, error) {
	r := Report{Bench: "idle"}
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return r, err
	}
	idle := &idle{idleConfig: c, rdb: rdb}
	defer idle.stop()
	start := time.Now()
	if err := idle.start(ctx); err != nil {
		return r, err
	}
	r.add("until all workers have a lease", time.Since(start).Seconds(), "s")
	pause(ctx, 2*c.For/3) // until the cost of starting is over

	before, calls, err := idle.usage(ctx)
	if err != nil {
		return r, err
	}
	began := time.Now()
	pause(ctx, c.For)
	after, later, err := idle.usage(ctx)
	took := time.Since(began).Seconds()
	r.add("Redis", (after[0]-before[0])/took*100, "% of a processor")
	r.add("all clients", (after[1]-before[1])/took*100, "% of a processor")
	r.add("calls", float64(later-calls)/took, "/s")
	if err != nil {
		return r, err
	}
	connections, err := infoNumber(ctx, rdb, "clients", "connected_clients")
	r.add("connections", float64(connections), "")
	return r, err
}

// idle is a fleet of workers and reapers without work.
type idle struct {
	idleConfig
	rdb     redis.UniversalClient
	cancel  context.CancelFunc
	running sync.WaitGroup
	clients []redis.UniversalClient
	root    func(partition int) string
}

func (i *idle) start(ctx context.Context) error {
	ctx, i.cancel = context.WithCancel(ctx)
	failed := make(chan error, i.Workers+i.Reapers)
	var q *queue.Queue
	for n := range i.Workers + i.Reapers {
		if q == nil || !i.Shared {
			var err error
			if q, err = i.open(ctx); err != nil {
				return err
			}
		}
		run := reaper.New(q, reaper.Config{}).Run
		if n < i.Workers {
			w := worker.New(q, worker.Config{Concurrency: 1})
			worker.Handle(w, "noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
			run = w.Run
		}
		i.running.Go(func() {
			if err := run(ctx); err != nil {
				failed <- err
			}
		})
	}
	return i.awaitLeases(ctx, failed)
}

// open opens the namespace with a new client.
func (i *idle) open(ctx context.Context) (*queue.Queue, error) {
	options := *i.rdb.(*redis.Client).Options()
	options.ContextTimeoutEnabled = true
	client := redis.NewClient(&options)
	i.clients = append(i.clients, client)
	q, err := queue.Open(ctx, client, queue.Config{Namespace: "bench", Partitions: i.Partitions, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		i.root = q.Root
	}
	return q, err
}

// awaitLeases returns when every worker has a lease in every partition.
func (i *idle) awaitLeases(ctx context.Context, failed <-chan error) error {
	for start := time.Now(); ; {
		var leases int64
		for p := range i.Partitions {
			n, err := i.rdb.ZCard(ctx, i.root(p)+":workers").Result()
			if err != nil {
				return err
			}
			leases += n
		}
		if leases == int64(i.Workers*i.Partitions) {
			return nil
		}
		if time.Since(start) > startFor { // real time: only a hang exceeds it
			return fmt.Errorf("after %v only %d of %d leases exist", startFor, leases, i.Workers*i.Partitions)
		}
		select {
		case err := <-failed:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// usage returns the CPU seconds of Redis and of this process, and the number of scripts and
// blocking calls that Redis has run.
func (i *idle) usage(ctx context.Context) (used [2]float64, calls int64, err error) {
	if used, err = cpu(ctx, i.rdb); err != nil {
		return used, 0, err
	}
	info, err := i.rdb.Info(ctx, "commandstats").Result()
	stats := infoFields(info)
	for _, command := range append([]string{"blpop"}, scriptCommands...) {
		var n int64
		fmt.Sscanf(stats["cmdstat_"+command], "calls=%d,", &n)
		calls += n
	}
	return used, calls, err
}

func (i *idle) stop() {
	if i.cancel != nil {
		i.cancel()
	}
	i.running.Wait()
	for _, client := range i.clients {
		client.Close()
	}
}
