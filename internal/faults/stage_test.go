package faults

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// patience is how long a test waits for what must happen; what takes it has failed.
const patience = 30 * time.Second

// stage is a namespace of a test's own on a server of its own, that tells of all
// transitions.
type stage struct {
	*testing.T
	ctx    context.Context
	addr   string        // where its participants connect
	rdb    *redis.Client // the operator's: past any proxy
	q      *queue.Queue  // of the operator
	logs   *logs
	ledger *ledger

	oneReaper  bool // the test's own; fleets have none
	complaints int
}

// newStage makes a namespace. Participants connect to addr, the operator to direct.
func newStage(t *testing.T, addr, direct string) *stage {
	t.Helper()
	s := &stage{T: t, ctx: t.Context(), addr: addr, logs: &logs{}, ledger: newLedger()}
	s.rdb = client(t, direct)
	var err error
	s.q, err = queue.Open(s.ctx, s.rdb, queue.Config{Namespace: redistest.Namespace(t), Events: "all",
		Logger: slog.New(slog.NewTextHandler(s.logs, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%.20000s", s.logs.String())
		}
	})
	return s
}

// client is a client of its own: no two participants share connections.
func client(t *testing.T, addr string) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// another opens the namespace again, as a participant does: a producer, a worker.
func (s *stage) another() *queue.Queue { return s.at(s.addr) }

func (s *stage) at(addr string) *queue.Queue {
	s.Helper()
	q, err := queue.Open(s.ctx, client(s.T, addr), queue.Config{Namespace: s.q.Namespace(), Logger: s.q.Logger()})
	if err != nil {
		s.Fatal(err)
	}
	return q
}

func (s *stage) key(name string) string { return s.q.Root(0) + ":" + name }

// enqueue hands tasks over by the operator, and puts them down in the ledger.
func (s *stage) enqueue(tasks ...queue.Task) []string {
	s.Helper()
	kept(tasks)
	receipts, err := s.q.EnqueueAll(s.ctx, tasks)
	if err != nil {
		s.Fatal(err)
	}
	ids := make([]string, len(receipts))
	for i, r := range receipts {
		if r.Err != nil {
			s.Fatal(r.Err)
		}
		ids[i] = r.ID
	}
	s.ledger.acknowledge(ids...)
	return ids
}

func (s *stage) record(id string) *queue.Record {
	s.Helper()
	r, err := s.q.Get(s.ctx, id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// ended waits for the end of a task and returns its record.
func (s *stage) ended(id string) *queue.Record {
	s.Helper()
	eventually(s.T, id+" has ended", func() bool { return s.record(id).Status.Ended() })
	return s.record(id)
}

// run starts what blocks until its context ends; stop returns when it has ended.
func (s *stage) run(what func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- what(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				s.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(2 * patience):
			s.Error("Run does not return")
		}
	})
	s.Cleanup(stop)
	return stop
}

// work runs a worker with these handlers.
func (s *stage) work(w *worker.Worker, handlers map[string]worker.Handler) (stop func()) {
	for kind, h := range handlers {
		w.HandleRaw(kind, h)
	}
	return s.run(w.Run)
}

// reap runs a reaper in this process.
func (s *stage) reap() (stop func()) {
	s.Helper()
	return s.run(reaper.New(s.another(), reaper.Config{}).Run)
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
		time.Sleep(5 * time.Millisecond)
	}
}

// pass lets time go by.
//
// sleeps: only where the matter of a test is how long something lasts
func pass(d time.Duration) { <-time.After(d) }

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

func (l *logs) count(s string) int { return strings.Count(l.String(), s) }
