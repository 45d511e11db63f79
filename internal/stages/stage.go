package stages

import (
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Stage is a namespace of a test's own.
type Stage struct {
	*testing.T
	// Addr is where participants connect. A test may set it to a proxy.
	Addr string
	// Q is the operator's: it is connected to the server itself, past any proxy.
	Q *queue.Queue
	// Redis is the client of Q.
	Redis redis.UniversalClient
	// Logs is what all participants of this process log.
	Logs *Logs
	// Ledger has what Enqueue was told. A test may add what others are told.
	Ledger *Ledger

	connect    func() (redis.UniversalClient, error)
	complaints int
}

// New makes a namespace on one server. The stage chooses its name and its logger.
func New(t *testing.T, addr string, config queue.Config) *Stage {
	t.Helper()
	s := &Stage{T: t, Addr: addr}
	s.connect = func() (redis.UniversalClient, error) { return newClient(s.Addr), nil }
	s.begin(config)
	return s
}

// NewBy makes a namespace on servers that connect finds.
func NewBy(t *testing.T, connect func() (redis.UniversalClient, error), config queue.Config) *Stage {
	t.Helper()
	s := &Stage{T: t, connect: connect}
	s.begin(config)
	return s
}

func (s *Stage) begin(config queue.Config) {
	s.Helper()
	s.Logs, s.Ledger = &Logs{}, &Ledger{}
	config.Namespace = redistest.Namespace(s)
	config.Logger = slog.New(slog.NewTextHandler(s.Logs, nil))
	s.Q = s.open(s.connect, config)
	s.Redis = s.Q.Client()
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("the log:\n%.20000s", s.Logs)
		}
	})
}

func (s *Stage) open(connect func() (redis.UniversalClient, error), config queue.Config) *queue.Queue {
	s.Helper()
	rdb, err := connect()
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { rdb.Close() })
	q, err := queue.Open(s.Context(), rdb, config)
	if err != nil {
		s.Fatal(err)
	}
	return q
}

// Another opens the namespace again, as a participant does: a producer, a worker. No two
// participants share connections.
func (s *Stage) Another() *queue.Queue {
	s.Helper()
	return s.open(s.connect, queue.Config{Namespace: s.Q.Namespace(), Logger: s.Q.Logger()})
}

// AnotherAt is Another for a participant that connects elsewhere.
func (s *Stage) AnotherAt(addr string) *queue.Queue {
	s.Helper()
	connect := func() (redis.UniversalClient, error) { return newClient(addr), nil }
	return s.open(connect, queue.Config{Namespace: s.Q.Namespace(), Logger: s.Q.Logger()})
}

// Client is a client of the test's own, closed when the test ends.
func Client(tb testing.TB, addr string) *redis.Client {
	rdb := newClient(addr)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// newClient is a client whose calls end with their contexts, as those of queue.Connect do.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

// Key is the name of a key of the first partition.
func (s *Stage) Key(name string) string { return s.Q.Root(0) + ":" + name }

// Enqueue hands tasks over by the operator. All must be accepted.
func (s *Stage) Enqueue(tasks ...queue.Task) (ids []string) {
	s.Helper()
	receipts, err := s.Q.EnqueueAll(s.Context(), tasks)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range receipts {
		if r.Err != nil {
			s.Fatal(r.Err)
		}
		ids = append(ids, r.ID)
	}
	s.Ledger.Acknowledge(ids...)
	return ids
}

// Record is what is stored of a task.
func (s *Stage) Record(id string) *queue.Record {
	s.Helper()
	r, err := s.Q.Get(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// Ended waits for the end of a task and returns its record.
func (s *Stage) Ended(id string) (r *queue.Record) {
	s.Helper()
	await.Until(s, id+" has ended", func() bool {
		r = s.Record(id)
		return r.Status.Ended()
	})
	return r
}

// Complain is Errorf that gives up when it is a flood.
func (s *Stage) Complain(format string, args ...any) {
	s.Helper()
	s.Errorf(format, args...)
	if s.complaints++; s.complaints == 20 {
		s.Fatal("and so on")
	}
}
