package agentwait_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // these tests wait more than they compute
	redistest.Main(m)
}

// stage is a namespace whose clock the test moves, and a worker that runs one task at a time in the
// test's goroutine. Nothing else runs.
type stage struct {
	t   *testing.T
	ctx context.Context
	rdb *redis.Client
	q   *queue.Queue
	w   *worker.Worker
	now time.Time

	counted int // a counter for the test
}

// newStage returns a stage for a test that runs in parallel with others.
func newStage(t *testing.T) *stage {
	t.Parallel()
	return playStage(t)
}

func playStage(t *testing.T) *stage { return stageOn(t, redistest.Shared(t).Client(t)) }

// ownRedis returns a client of a server whose settings the test can change.
func ownRedis(t *testing.T) *redis.Client { return redistest.Start(t).Client(t) }

func stageOn(t *testing.T, rdb *redis.Client) *stage {
	s := &stage{t: t, ctx: t.Context(), rdb: rdb, now: testclock.Start}
	q, err := queue.Open(s.ctx, rdb, queue.Config{Namespace: redistest.Namespace(t), Events: "all",
		Library: testclock.Library(t, rdb), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.q = q
	s.w = s.another()
	testclock.Set(t, rdb, q.Root(0), s.now)
	t.Cleanup(func() {
		findings, err := inspect.Audit(context.Background(), q)
		findings = slices.DeleteFunc(findings, func(f audit.Finding) bool { return f.Subject == "clock" }) // the test has set the clock
		if err != nil || len(findings) > 0 {
			t.Errorf("the audit found %v, %v", findings, err)
		}
	})
	return s
}

// another returns another worker, like one that is deployed later.
func (s *stage) another() *worker.Worker { return worker.New(s.q, worker.Config{}) }

// enqueue enqueues a task, and returns its id.
func (s *stage) enqueue(kind string, payload string) string {
	s.t.Helper()
	r, err := s.q.Enqueue(s.ctx, queue.Task{Kind: kind, Payload: []byte(payload)})
	if err != nil {
		s.t.Fatal(err)
	}
	return r.ID
}

// run runs the next n ready tasks.
func (s *stage) run(n int) {
	s.t.Helper()
	for range n {
		ran, err := s.w.RunOne(s.ctx)
		if err != nil || ran == nil {
			s.t.Fatalf("RunOne: %v, %v", ran, err)
		}
	}
}

// drain runs ready tasks until none is ready, and returns how many it ran.
func (s *stage) drain() (n int) {
	s.t.Helper()
	for ; ; n++ {
		ran, err := s.w.RunOne(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if ran == nil {
			return n
		}
		if n == 1000 {
			s.t.Fatal("1000 tasks ran, and more are ready")
		}
	}
}

// advance moves the clock, and sweeps until nothing is due.
func (s *stage) advance(d time.Duration) {
	s.t.Helper()
	s.now = s.now.Add(d)
	testclock.Set(s.t, s.rdb, s.q.Root(0), s.now)
	for range 100 {
		swept, err := reaper.Sweep(s.ctx, s.q, 0, "r", 100, time.Second)
		if err != nil {
			s.t.Fatal(err)
		}
		if swept.Wait > 0 {
			return
		}
	}
	s.t.Fatal("after 100 sweeps more is due")
}

func (s *stage) get(id string) *queue.Record {
	s.t.Helper()
	r, err := s.q.Get(s.ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// completed checks that a task is COMPLETED with a result.
func (s *stage) completed(id, result string) {
	s.t.Helper()
	if r := s.get(id); r.Status != queue.Completed || string(r.Result) != result {
		s.t.Fatalf("%s is %s, result %s, error %s: want COMPLETED with %s", id, r.Status, r.Result, r.Error, result)
	}
}

// diverged checks that an agent was given back because its replay differs, without a retry, and returns the difference.
func (s *stage) diverged(id string) string {
	s.t.Helper()
	r := s.get(id)
	if text := r.Fields["release_reason"]; r.Status == queue.Pending && r.Retries == 0 && strings.HasPrefix(text, agentwait.ErrReplayDiverged.Error()) {
		return text
	}
	s.t.Fatalf("%s is %s after %d retries, given back for %q, error %s: want PENDING, given back for a replay that differs", id, r.Status, r.Retries,
		r.Fields["release_reason"], r.Error)
	return ""
}

// is checks the status of a task.
func (s *stage) is(id string, status queue.Status) {
	s.t.Helper()
	if r := s.get(id); r.Status != status {
		s.t.Fatalf("%s is %s (%s%s), want %s", id, r.Status, r.Result, r.Error, status)
	}
}

var errBoom = errors.New("boom")

// handlers registers the handlers of children: echo returns its payload, fail fails.
func (s *stage) handlers(w *worker.Worker) {
	worker.Handle(w, "echo", func(_ context.Context, in string) (string, error) { return in, nil })
	worker.Handle(w, "fail", func(_ context.Context, in string) (string, error) { return "", errBoom })
}

type (
	agent   = agentwait.Agent
	futures = []*agentwait.Future[string]
)

// echo schedules a child that returns its payload.
func echo(a *agent, what string) *agentwait.Future[string] {
	return agentwait.Schedule[string](a, what, queue.Task{Kind: "echo"})
}
