package harness

import (
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Stage is the namespace of one test.
type Stage struct {
	*testing.T
	// Addr is where participants connect. A test may set it to a proxy.
	Addr string
	// Q is the operator's queue. It is connected to the server itself, not to a proxy.
	Q *queue.Queue
	// Redis is the client of Q.
	Redis redis.UniversalClient
	// Logs has the log of all participants in this process.
	Logs *Logs
	// Ledger has the replies to Enqueue. A test may add other replies.
	Ledger *Ledger

	connect    func() (redis.UniversalClient, error)
	complaints int
}

// New creates a namespace on one server. The stage sets the name and the logger of config.
func New(t *testing.T, addr string, config queue.Config) *Stage {
	t.Helper()
	s := &Stage{T: t, Addr: addr}
	s.connect = func() (redis.UniversalClient, error) { return newClient(s.Addr), nil }
	s.begin(config)
	return s
}

// NewBy creates a namespace on the servers to which connect returns a client.
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
	config.Logger = slog.New(slog.NewTextHandler(s.Logs, &slog.HandlerOptions{Level: slog.LevelWarn})) // a line for each timeout would be too many
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
	q.Engine().SetTryFor(engine.TryFor) // as outside of tests: the links of a stage lose replies
	return q
}

// Another opens the namespace for one more participant, such as a producer or a worker.
// Participants do not share connections.
func (s *Stage) Another() *queue.Queue {
	s.Helper()
	return s.open(s.connect, queue.Config{Namespace: s.Q.Namespace(), Logger: s.Q.Logger()})
}

// AnotherAt is like Another, for a participant that connects to another address.
func (s *Stage) AnotherAt(addr string) *queue.Queue {
	s.Helper()
	connect := func() (redis.UniversalClient, error) { return newClient(addr), nil }
	return s.open(connect, queue.Config{Namespace: s.Q.Namespace(), Logger: s.Q.Logger()})
}

// Client returns a new client, which is closed when the test ends.
func Client(tb testing.TB, addr string) *redis.Client {
	rdb := newClient(addr)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// newClient returns a client whose calls end with their contexts, like those of queue.Connect.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

// Key returns the name of a key in the first partition.
func (s *Stage) Key(name string) string { return s.Q.Root(0) + ":" + name }

// Enqueue enqueues tasks with Q. All must be accepted.
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

// Record returns the record of a task.
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

// Complain is like Errorf, and ends the test at the 20th complaint.
func (s *Stage) Complain(format string, args ...any) {
	s.Helper()
	s.Errorf(format, args...)
	if s.complaints++; s.complaints == 20 {
		s.Fatal("too many complaints")
	}
}
