package bench

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// calm is how long the load runs before each kill. It is about as long as a failover takes, so
// that the longest gaps of both can be compared.
const calm = 2 * time.Second

// Failover measures failovers of a cluster that it starts itself. Under a steady load it kills a
// master kills times: that of partition 0, of partition 1, and so on. It reports how long the
// partitions of that master acknowledged no task or ended no task, and the longest such gap of
// the other partitions.
func Failover(ctx context.Context, kills, partitions int) (Report, error) {
	r := Report{Bench: "failover"}
	dir, err := os.MkdirTemp("", "curfew-bench")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	cluster, err := redisproc.StartCluster(dir)
	if err != nil {
		return r, err
	}
	defer cluster.Kill()
	rdb := queue.ConnectCluster(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer rdb.Close()
	q, err := queue.Open(ctx, rdb, queue.Config{Namespace: "bench", Partitions: partitions, Logger: slog.New(slog.DiscardHandler)}) // warnings about dead masters are expected
	if err != nil {
		return r, err
	}
	stop := work(ctx, q)
	defer stop()
	load := StartLoad(ctx, q, "noop", 5*time.Millisecond)
	names := [...]string{"without service", "of it until the replica is promoted",
		"others: longest gap of enqueues", "others: longest gap of ends", "longest gap before the kill"}
	var all [len(names)][]time.Duration
	for i := range kills {
		figures, err := killOne(ctx, cluster, rdb, load, i%partitions)
		if err != nil {
			load.Stop()
			return r, fmt.Errorf("kill %d: %w", i+1, err)
		}
		for j, name := range names {
			r.add(fmt.Sprintf("kill %d: %s", i+1, name), milliseconds(figures[j]), "ms")
			all[j] = append(all[j], figures[j])
		}
	}
	for j, name := range names {
		r.spread(name, all[j])
	}
	r.losses(load.Stop())
	return r, nil
}

// work runs a worker until stop is called.
func work(ctx context.Context, q *queue.Queue) (stop func()) {
	w := worker.New(q, worker.Config{Concurrency: 50})
	w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

// killOne kills the master that serves a partition, and heals the cluster afterwards. It
// returns how long the master's partitions were without service, and how long the promotion of
// its replica took. Then come the two longest gaps of the other partitions, and the longest gap
// of all partitions before the kill.
func killOne(ctx context.Context, cluster *redisproc.Cluster, rdb *redis.ClusterClient, load *Load, partition int) (figures [5]time.Duration, err error) {
	before := time.Now()
	pause(ctx, calm)
	victim, err := cluster.Master(ctx, rdb, load.q.Root(partition))
	if err != nil {
		return figures, err
	}
	var struck, spared []int
	for p := range load.q.Partitions() {
		master, err := cluster.Master(ctx, rdb, load.q.Root(p))
		if err != nil {
			return figures, err
		}
		if master == victim {
			struck = append(struck, p)
		} else {
			spared = append(spared, p)
		}
	}
	figures[4] = max(load.Gap(slices.Concat(struck, spared), before))
	killed := time.Now()
	victim.Kill()
	if err := cluster.Replica(victim).AwaitMaster(); err != nil {
		return figures, err
	}
	figures[1] = time.Since(killed)
	for _, p := range struck {
		if err := load.awaitFlow(ctx, p, killed); err != nil {
			return figures, err
		}
	}
	figures[0] = max(load.Gap(struck, killed))
	figures[2], figures[3] = load.Gap(spared, killed)
	return figures, cluster.Heal()
}

// spread adds the median and the maximum.
func (r *Report) spread(name string, all []time.Duration) {
	slices.Sort(all)
	r.add(name+" median", milliseconds(all[len(all)/2]), "ms")
	r.add(name+" max", milliseconds(all[len(all)-1]), "ms")
}

// losses adds how many tasks were acknowledged and ended, were refused, and were acknowledged and
// never ended.
func (r *Report) losses(marks [][]*Mark) {
	var acked, refused, lost int
	for _, m := range slices.Concat(marks...) {
		switch {
		case m.Err != nil:
			refused++
		case m.Ended.IsZero():
			lost++
		default:
			acked++
		}
	}
	r.add("tasks acknowledged and ended", float64(acked), "")
	r.add("enqueues that failed", float64(refused), "")
	r.add("tasks acknowledged and lost", float64(lost), "")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
