package shards

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// stage is a new namespace for a test.
type stage struct {
	*harness.Stage
	slow bool // an election of Redis took longer than a call is tried
}

func newStage(t *testing.T, url string, partitions int) *stage {
	t.Helper()
	return stageOf(t, partitions, func() (redis.UniversalClient, error) { return queue.Connect(url) })
}

func stageOf(t *testing.T, partitions int, connect func() (redis.UniversalClient, error)) *stage {
	t.Helper()
	return &stage{Stage: harness.NewBy(t, connect, queue.Config{Partitions: partitions})}
}

func (s *stage) cluster() *redis.ClusterClient { return s.Redis.(*redis.ClusterClient) }

// work runs a worker until the test ends or stop is called. Its lease is longer than four node
// timeouts of the cluster.
func (s *stage) work(register func(w *worker.Worker)) (stop func()) {
	s.Helper()
	w := worker.New(s.Another(), worker.Config{Concurrency: 20, Lease: 3 * time.Second})
	register(w)
	return s.Run(w.Run)
}

// noop registers the handler of the load.
func noop(w *worker.Worker) {
	w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
}

// load starts a load on every partition, until the test ends. It returns when tasks flow.
func (s *stage) load() *bench.Load {
	s.Helper()
	l := bench.StartLoad(s.Context(), s.Another(), "noop", 5*time.Millisecond)
	s.Cleanup(func() { l.Stop() })
	s.flows(l, time.Now())
	return l
}

// flows waits until each partition has ended a task that was sent after an instant.
func (s *stage) flows(l *bench.Load, after time.Time) {
	s.Helper()
	for p := range s.Q.Partitions() {
		await.Until(s, "each partition ends tasks", func() bool { return l.Flows(p, after) })
	}
}

// all returns all partitions.
func (s *stage) all() (partitions []int) {
	for p := range s.Q.Partitions() {
		partitions = append(partitions, p)
	}
	return partitions
}

// served returns the partitions by the address of their master.
func (s *stage) served() map[string][]int {
	s.Helper()
	by := map[string][]int{}
	for p := range s.Q.Partitions() {
		master, err := s.cluster().MasterForKey(s.Context(), s.Q.Root(p))
		if err != nil {
			s.Fatal(err)
		}
		by[master.Options().Addr] = append(by[master.Options().Addr], p)
	}
	return by
}
