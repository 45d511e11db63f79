package bench

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"slices"
	"sync"
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
	var samples [len(names)][]time.Duration
	for i := range kills {
		figures, err := killOne(ctx, cluster, rdb, load, i%partitions)
		if err != nil {
			load.Stop()
			return r, fmt.Errorf("kill %d: %w", i+1, err)
		}
		for j, name := range names {
			r.add(fmt.Sprintf("kill %d: %s", i+1, name), milliseconds(figures[j]), "ms")
			samples[j] = append(samples[j], figures[j])
		}
	}
	for j, name := range names {
		r.spread(name, samples[j])
	}
	r.losses(load.Stop())
	return r, nil
}

// work runs a worker until stop is called.
func work(ctx context.Context, q *queue.Queue) (stop func()) {
	w := worker.New(q, worker.Config{Concurrency: 50})
	w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		<-done
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

// Load is a steady stream of tasks to every partition. It records when each task was
// acknowledged, and when its end was seen.
type Load struct {
	q       *queue.Queue
	stop    context.CancelFunc
	senders sync.WaitGroup
	waiters sync.WaitGroup

	mu    sync.Mutex
	marks [][]*Mark // a partition, in the order sent
}

// Mark records the history of one task. An instant is zero if its event has not happened.
type Mark struct {
	ID                 string
	Sent, Acked, Ended time.Time
	Err                error // of the enqueue
	EndErr             error // of the wait for its end
}

// StartLoad enqueues a task of a kind to each partition at an interval, until ctx ends or Stop is
// called. If an enqueue takes longer, the next one begins when it has returned. The caller must run
// a worker for the tasks.
func StartLoad(ctx context.Context, q *queue.Queue, kind string, every time.Duration) *Load {
	l := &Load{q: q, marks: make([][]*Mark, q.Partitions())}
	sending, stop := context.WithCancel(ctx)
	l.stop = stop
	for p := range l.marks {
		l.senders.Go(func() { l.send(sending, p, kind, every, func(m *Mark) { l.wait(ctx, m) }) })
	}
	return l
}

// send enqueues the tasks of a partition, and calls wait for each that was acknowledged.
func (l *Load) send(ctx context.Context, p int, kind string, every time.Duration, wait func(*Mark)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 0; ctx.Err() == nil; {
		task := queue.Task{Kind: kind, Payload: payload(), Timeout: time.Minute}
		task.IdempotencyKey, n = keyOf(p, l.q.Partitions(), n)
		m := &Mark{Sent: time.Now()}
		// Without ctx's end: the result of every enqueue must be known.
		r, err := l.q.Enqueue(context.WithoutCancel(ctx), task)
		l.mu.Lock()
		m.ID, m.Err = r.ID, err
		if err == nil {
			m.Acked = time.Now()
		}
		l.marks[p] = append(l.marks[p], m)
		l.mu.Unlock()
		if err == nil {
			l.waiters.Go(func() { wait(m) })
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// keyOf returns an idempotency key that belongs to partition p (lua/calls.md), and the number
// to continue from.
func keyOf(p, partitions, from int) (key string, next int) {
	for n := from; ; n++ {
		if key = fmt.Sprintf("load-%d", n); int(crc32.ChecksumIEEE([]byte(key))%uint32(partitions)) == p {
			return key, n + 1
		}
	}
}

func (l *Load) wait(ctx context.Context, m *Mark) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := l.q.Result(ctx, m.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.EndErr = err; err == nil {
		m.Ended = time.Now()
	}
}

// Stop ends the stream and returns the marks of each partition, in the order sent. It waits for
// all tasks to end, up to a minute each, or until the context of StartLoad ends.
func (l *Load) Stop() [][]*Mark {
	l.stop()
	l.senders.Wait()
	l.waiters.Wait()
	return l.marks
}

// Flows reports whether partition p has acknowledged and ended a task that was sent after an
// instant.
func (l *Load) Flows(p int, after time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.marks[p]) - 1; i >= 0 && l.marks[p][i].Sent.After(after); i-- {
		if !l.marks[p][i].Ended.IsZero() {
			return true
		}
	}
	return false
}

// awaitFlow waits until partition p has acknowledged and ended a task that was sent after its master was
// killed.
func (l *Load) awaitFlow(ctx context.Context, p int, killed time.Time) error {
	for !l.Flows(p, killed) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(killed) > time.Minute:
			return fmt.Errorf("partition %d is not served again: %v after its master was killed", p, time.Since(killed))
		}
		pause(ctx, 5*time.Millisecond)
	}
	return nil
}

// Gap returns the longest time after an instant in which one of the partitions acknowledged
// nothing, and the longest in which one ended nothing. A gap that has not ended does not count.
func (l *Load) Gap(partitions []int, after time.Time) (acking, ending time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range partitions {
		var acked, ended []time.Time
		for _, m := range l.marks[p] {
			acked, ended = append(acked, m.Acked), append(ended, m.Ended)
		}
		acking, ending = max(acking, gap(acked, after)), max(ending, gap(ended, after))
	}
	return acking, ending
}

// gap returns the longest time between two neighbouring instants, beginning with after.
func gap(times []time.Time, after time.Time) (longest time.Duration) {
	slices.SortFunc(times, time.Time.Compare)
	for _, at := range times {
		if at.After(after) {
			longest, after = max(longest, at.Sub(after)), at
		}
	}
	return longest
}
