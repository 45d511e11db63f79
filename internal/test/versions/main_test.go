package versions

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// stage is a namespace whose clock the test moves.
type stage struct {
	*testing.T
	rdb redis.UniversalClient
	q   *queue.Queue
	now time.Time
}

// newStage opens a namespace. library is that of the program, nil for the one that is built here.
func newStage(t *testing.T, rdb redis.UniversalClient, library *lua.Library, now time.Time) *stage {
	t.Helper()
	if library == nil {
		library = testclock.Library(t, rdb)
	}
	testclock.Set(t, rdb, root, now)
	q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: namespace, Events: queue.EventsAll, Library: library, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, rdb, q, now}
}

// worker returns a worker that has all handlers of the fixture.
func (s *stage) worker() *worker.Worker {
	w := worker.New(s.q, worker.Config{Name: "w"})
	handlers(w)
	return w
}

// run runs tasks of some queues until none is ready.
func (s *stage) run(w *worker.Worker, queues ...string) {
	s.Helper()
	for range 1000 {
		ran, err := w.RunOne(s.Context(), queues...)
		if err != nil {
			s.Fatal(err)
		}
		if ran == nil {
			return
		}
	}
	s.Fatal("1000 tasks ran, and more are ready")
}

// advance moves the clock, and sweeps until nothing is due.
func (s *stage) advance(d time.Duration) {
	s.Helper()
	s.now = s.now.Add(d)
	testclock.Set(s, s.rdb, root, s.now)
	s.sweep()
}

func (s *stage) sweep() {
	s.Helper()
	for range 100 {
		swept, err := reaper.Sweep(context.Background(), s.q, 0, "r", 100, time.Second)
		if err != nil {
			s.Fatal(err)
		}
		if len(swept.Errors) > 0 {
			s.Fatal(swept.Errors)
		}
		if swept.Wait > 0 {
			return
		}
	}
	s.Fatal("after 100 sweeps more is due")
}

// sound fails the test for each finding of the audit.
func (s *stage) sound() {
	s.Helper()
	findings, err := inspect.Audit(context.Background(), s.q)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range findings {
		if f.Subject != "clock" { // which the test has set
			s.Errorf("audit: %s", f)
		}
	}
}
