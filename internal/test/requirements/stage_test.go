package requirements

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/eventlog"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // these tests mostly wait
	redistest.Main(m)
}

// fixedError is the error that the document gives to a task that timed out.
const fixedError = "Task exceeded deadline"

// stage is the namespace of one test, on a real Redis.
type stage struct {
	*testing.T
	rdb redis.UniversalClient
	q   *queue.Queue
	now time.Time // the frozen clock; zero if time runs
	seq int64     // the seq of the last fetch
}

// running returns a stage on which time runs.
func running(t *testing.T) *stage {
	return open(t, redistest.Shared(t).Client(t), queue.Config{}, time.Time{})
}

// frozen returns a stage on which only advance moves the time.
func frozen(t *testing.T) *stage {
	rdb := redistest.Shared(t).Client(t)
	return open(t, rdb, queue.Config{Library: testclock.Library(t, rdb)}, testclock.Start)
}

func open(t *testing.T, rdb redis.UniversalClient, config queue.Config, now time.Time) *stage {
	t.Helper()
	config.Namespace = redistest.Namespace(t)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	q, err := queue.Open(t.Context(), rdb, config)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, rdb: rdb, q: q, now: now}
	t.Cleanup(s.audit)
	return s
}

// audit checks at the end of a test that records and indexes agree.
func (s *stage) audit() {
	if s.Failed() {
		return
	}
	findings, err := inspect.Audit(context.Background(), s.q)
	if err != nil {
		s.Error(err)
	}
	for _, f := range findings {
		if f.Subject != "clock" { // a frozen clock differs from that of Redis
			s.Errorf("audit: %v", f)
		}
	}
}

func (s *stage) advance(d time.Duration) {
	s.now = s.now.Add(d)
	testclock.Set(s, s.rdb, s.q.Root(0), s.now)
}

func (s *stage) enqueue(task queue.Task) string {
	s.Helper()
	r, err := s.q.Enqueue(s.Context(), task)
	if err != nil {
		s.Fatal(err)
	}
	return r.ID
}

// enqueueAll enqueues n tasks and returns their ids in order.
func (s *stage) enqueueAll(n int, task func(i int) queue.Task) []string {
	s.Helper()
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = task(i)
	}
	receipts, err := s.q.EnqueueAll(s.Context(), tasks)
	if err != nil {
		s.Fatal(err)
	}
	ids := make([]string, n)
	for i, r := range receipts {
		if r.Err != nil {
			s.Fatal(r.Err)
		}
		ids[i] = r.ID
	}
	return ids
}

// fetch claims up to n tasks for worker w, whose lease outlasts every test.
func (s *stage) fetch(n int) []queue.Claim {
	s.Helper()
	s.seq++
	trip, err := claim.Of(s.q).Fetch(s.Context(), 0, "w", claim.Ask{
		N: n, Seq: s.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "default", N: n}},
	})
	if err != nil {
		s.Fatal(err)
	}
	return trip.Claims
}

// claim claims the next task, which must exist.
func (s *stage) claim() queue.Claim {
	s.Helper()
	claims := s.fetch(1)
	if len(claims) != 1 {
		s.Fatalf("fetch gave %d tasks, want 1", len(claims))
	}
	return claims[0]
}

// settle reports an outcome of an attempt and returns the verdict.
func (s *stage) settle(c queue.Claim, o queue.Outcome) queue.Verdict {
	s.Helper()
	o.ID, o.Epoch = c.ID, c.Epoch
	trip, err := claim.Of(s.q).Settle(s.Context(), 0, "w", queue.NewCall(), []queue.Outcome{o}, claim.Ask{})
	if err != nil {
		s.Fatal(err)
	}
	return trip.Verdicts[0]
}

func (s *stage) complete(c queue.Claim) queue.Verdict {
	s.Helper()
	return s.settle(c, queue.Outcome{Verb: queue.Complete, Result: []byte(`"done"`)})
}

// sweep runs one sweep of a reaper with the default batch and fall-back.
func (s *stage) sweep() reaper.Swept {
	s.Helper()
	swept, err := reaper.Sweep(s.Context(), s.q, 0, "r", 100, 500*time.Millisecond)
	if err != nil {
		s.Fatal(err)
	}
	if len(swept.Errors) > 0 {
		s.Fatalf("sweep: %v", swept.Errors)
	}
	return swept
}

func (s *stage) record(id string) *queue.Record {
	s.Helper()
	r, err := s.q.Get(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// result waits for the end of a task and returns its result.
func (s *stage) result(id string) ([]byte, error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), await.Patience)
	defer cancel()
	result, err := s.q.Result(ctx, id)
	if ctx.Err() != nil {
		s.Fatalf("task %s has not ended: %v", id, s.record(id).Fields)
	}
	return result, err
}

// timedOut checks that a task ended by its deadline, and returns its record.
func (s *stage) timedOut(id string) *queue.Record {
	s.Helper()
	r := s.record(id)
	if r.Status != queue.Failed || r.Error != fixedError || !r.TimedOut || r.Reason != "timeout" || r.TimeoutType != "execution" {
		s.Fatalf("task %s is %s (%s, %s): %q, want FAILED (timeout, execution): %q", id, r.Status, r.Reason, r.TimeoutType, r.Error, fixedError)
	}
	if !r.CompletedAt.Equal(r.Deadline) {
		s.Fatalf("task %s ended at %v, want its deadline %v", id, r.CompletedAt, r.Deadline)
	}
	return r
}

// dump returns the whole namespace as text, to check that nothing changed.
func (s *stage) dump() string {
	s.Helper()
	return redistest.Dump(s, s.rdb, s.q.Root(0))
}

// members returns the ids in a sorted set of the namespace.
func (s *stage) members(key string) []string {
	s.Helper()
	ids, err := s.rdb.ZRange(s.Context(), s.q.Root(0)+":"+key, 0, -1).Result()
	if err != nil {
		s.Fatal(err)
	}
	return ids
}

// timeouts returns the task_timed_out events so far, by task. It fails the test if a task has
// two.
func (s *stage) timeouts() map[string]map[string]any {
	s.Helper()
	messages, err := s.rdb.XRange(s.Context(), s.q.EventsKey(0), "-", "+").Result()
	if err != nil {
		s.Fatal(err)
	}
	events := map[string]map[string]any{}
	for _, m := range eventlog.Events(messages...) {
		if m["kind"] != "task_timed_out" {
			continue
		}
		id := m["task_id"].(string)
		if events[id] != nil {
			s.Fatalf("task %s timed out twice", id)
		}
		events[id] = m
	}
	return events
}

// run calls what.Run in a goroutine. stop ends it and waits for it; so does the end of the test.
func (s *stage) run(what interface{ Run(context.Context) error }) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- what.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if _, waits := what.(*worker.Worker); waits {
			defer s.hurry()()
		}
		select {
		case err := <-ended:
			if err != nil {
				s.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(await.Patience):
			s.Error("Run did not return")
		}
	})
	s.Cleanup(stop)
	return stop
}

// hurry wakes a worker that waits for tasks. Otherwise it would stop only after a second. tidy
// removes the tokens that are too many.
func (s *stage) hurry() (tidy func()) {
	each := func(do func(ctx context.Context, key string) error) {
		for _, line := range []string{"default", "agents"} {
			if err := do(context.Background(), s.q.Root(0)+":wake:"+line); err != nil {
				s.Error(err)
			}
		}
	}
	each(func(ctx context.Context, key string) error { return s.rdb.LPush(ctx, key, "1").Err() })
	return func() {
		each(func(ctx context.Context, key string) error { return s.rdb.LTrim(ctx, key, 0, 0).Err() })
	}
}

// work runs a worker with one handler, of kind "k".
func (s *stage) work(config worker.Config, handle func(context.Context) error) (w *worker.Worker, stop func()) {
	w = worker.New(s.q, config)
	w.HandleRaw("k", func(ctx context.Context, _ []byte) ([]byte, error) { return []byte(`"done"`), handle(ctx) })
	return w, s.run(w)
}

func (s *stage) reap(config reaper.Config) (stop func()) {
	return s.run(reaper.New(s.q, config))
}

// exceeded reports whether an error is a timeout, as the recipe of the document does.
func exceeded(err error) bool {
	return err != nil && strings.Contains(err.Error(), "exceeded deadline")
}

// sleepy returns a handler that sleeps until d has passed or its context ends.
func sleepy(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deaf returns a handler that sleeps for d even if its context ends. wake ends the sleep, so
// that a test does not wait for it.
func deaf(d time.Duration) (handle func(context.Context) error, wake func()) {
	awake := make(chan struct{})
	handle = func(context.Context) error {
		select {
		case <-time.After(d):
		case <-awake:
		}
		return nil
	}
	return handle, sync.OnceFunc(func() { close(awake) })
}

var errAlways = errors.New("always")
