package bench

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// startFor is the longest time until all idle workers have a lease.
const startFor = 90 * time.Second

// IdleConfig says how many workers and reapers wait for work while Idle measures.
type IdleConfig struct {
	Workers, Reapers, Partitions int
	// Shared makes all of them use one client. Otherwise each has its own client, as if it
	// were a process.
	Shared bool
	// For is how long to measure.
	For time.Duration
}

// Idle measures the cost of idle workers and reapers: how much of a processor Redis and this
// process use, and how many scripts and blocking calls Redis runs in a second. It also reports
// the number of connections, and how long all workers took to get a lease. It needs a *redis.Client, at least one
// worker or reaper, a partition, and a positive For.
func Idle(ctx context.Context, rdb redis.UniversalClient, c IdleConfig) (Report, error) {
	r := Report{Bench: "idle"}
	if c.Workers+c.Reapers < 1 || c.Partitions < 1 || c.For <= 0 {
		return r, fmt.Errorf("%w: an idle fleet needs a worker or a reaper, a partition, and a time to measure", refusal.ErrInvalid)
	}
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return r, err
	}
	idle := &idle{IdleConfig: c, rdb: rdb}
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
	IdleConfig
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
		if time.Since(start) > startFor {
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
