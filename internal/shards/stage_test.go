package shards

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/bench"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// patience is how long a test waits for what must happen; what takes it has failed.
const patience = 30 * time.Second

// stage is a namespace of a test's own.
type stage struct {
	*testing.T
	connect func() (redis.UniversalClient, error)
	q       *queue.Queue
	logs    *logs
}

func newStage(t *testing.T, url string, partitions int) *stage {
	t.Helper()
	return stageOf(t, partitions, func() (redis.UniversalClient, error) { return queue.Connect(url) })
}

func stageOf(t *testing.T, partitions int, connect func() (redis.UniversalClient, error)) *stage {
	t.Helper()
	s := &stage{T: t, connect: connect, logs: &logs{}}
	s.q = s.open(queue.Config{Namespace: redistest.Namespace(t), Partitions: partitions})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%s", s.logs)
		}
	})
	return s
}

// another opens the namespace again with a client of its own.
func (s *stage) another() *queue.Queue {
	s.Helper()
	return s.open(queue.Config{Namespace: s.q.Namespace()})
}

func (s *stage) open(config queue.Config) *queue.Queue {
	s.Helper()
	rdb, err := s.connect()
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { rdb.Close() })
	config.Logger = slog.New(slog.NewTextHandler(s.logs, nil))
	q, err := queue.Open(s.Context(), rdb, config)
	if err != nil {
		s.Fatal(err)
	}
	return q
}

func (s *stage) rdb() *redis.ClusterClient { return s.q.Client().(*redis.ClusterClient) }

// work runs a worker until the test ends, or until stop. Its lease is longer than four
// node timeouts.
func (s *stage) work(register func(w *worker.Worker)) (stop func()) {
	s.Helper()
	w := worker.New(s.another(), worker.Config{Concurrency: 20, Lease: 3 * time.Second})
	register(w)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := receive(s.T, ended, "Run returns"); err != nil {
			s.Errorf("Run = %v, want nil", err)
		}
	})
	s.Cleanup(stop)
	return stop
}

// noop is a handler of the load.
func noop(w *worker.Worker) {
	w.HandleRaw("noop", func(context.Context, []byte) ([]byte, error) { return nil, nil })
}

// load has each partition fed, by a producer of its own, until the test ends.
func (s *stage) load() *bench.Load {
	s.Helper()
	l := bench.StartLoad(s.Context(), s.another(), "noop", 5*time.Millisecond)
	s.Cleanup(func() { l.Stop() })
	s.flows(l, time.Now())
	return l
}

// flows waits until each partition has ended a task that was sent after an instant.
func (s *stage) flows(l *bench.Load, after time.Time) {
	s.Helper()
	for p := range s.q.Partitions() {
		eventually(s.T, "each partition ends tasks", func() bool { return l.Flows(p, after) })
	}
}

// all are the partitions.
func (s *stage) all() (partitions []int) {
	for p := range s.q.Partitions() {
		partitions = append(partitions, p)
	}
	return partitions
}

// served are the partitions by the address of their master.
func (s *stage) served() map[string][]int {
	s.Helper()
	by := map[string][]int{}
	for p := range s.q.Partitions() {
		master, err := s.rdb().MasterForKey(s.Context(), s.q.Root(p))
		if err != nil {
			s.Fatal(err)
		}
		by[master.Options().Addr] = append(by[master.Options().Addr], p)
	}
	return by
}

// receive takes a value that must come.
func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("never: " + what)
		panic("unreachable")
	}
}

// eventually waits for what sends no signal.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !holds(); {
		if time.Now().After(until) {
			t.Fatal("never: " + what)
		}
		// sleeps: a state of Redis tells nobody when it is reached
		time.Sleep(2 * time.Millisecond)
	}
}

// calm lets the load run undisturbed for a while.
func calm(d time.Duration) {
	// sleeps: what the gaps of a span are is known when the span is over
	time.Sleep(d)
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
