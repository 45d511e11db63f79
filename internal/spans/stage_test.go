package spans_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// stage is a namespace whose clock the test moves, and whose spans the test reads.
type stage struct {
	*testing.T
	ctx      context.Context
	rdb      *redis.Client
	q        *queue.Queue
	w        *worker.Worker
	provider *sdk.TracerProvider
	exported *tracetest.InMemoryExporter
	now      time.Time
}

// newStage opens a namespace. If config has no provider, it gets one that keeps all spans in memory.
func newStage(t *testing.T, config queue.Tracing, options ...sdk.TracerProviderOption) *stage {
	t.Helper()
	s := &stage{T: t, ctx: t.Context(), rdb: redistest.Shared(t).Client(t), exported: tracetest.NewInMemoryExporter(), now: testclock.Start}
	s.provider = sdk.NewTracerProvider(append(options, sdk.WithSyncer(s.exported))...)
	config.Provider = s.provider
	s.open(config)
	return s
}

func (s *stage) open(config queue.Tracing) {
	s.Helper()
	q, err := queue.Open(s.ctx, s.rdb, queue.Config{Namespace: redistest.Namespace(s.T), Library: testclock.Library(s.T, s.rdb),
		Logger: slog.New(slog.DiscardHandler), Tracing: config})
	if err != nil {
		s.Fatal(err)
	}
	s.q, s.w = q, worker.New(q, worker.Config{})
	testclock.Set(s.T, s.rdb, q.Root(0), s.now)
}

func (s *stage) enqueue(ctx context.Context, task queue.Task) string {
	s.Helper()
	r, err := s.q.Enqueue(ctx, task)
	if err != nil {
		s.Fatal(err)
	}
	return r.ID
}

// drain runs ready tasks until none is ready.
func (s *stage) drain() {
	s.Helper()
	for range 100 {
		ran, err := s.w.RunOne(s.ctx)
		if err != nil {
			s.Fatal(err)
		}
		if ran == nil {
			return
		}
	}
	s.Fatal("100 tasks ran, and more are ready")
}

// advance moves the clock and sweeps.
func (s *stage) advance(d time.Duration) {
	s.Helper()
	s.now = s.now.Add(d)
	testclock.Set(s.T, s.rdb, s.q.Root(0), s.now)
	if _, err := reaper.Sweep(s.ctx, s.q, 0, "r", 100, time.Second); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) get(id string) *queue.Record {
	s.Helper()
	r, err := s.q.Get(s.ctx, id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// named returns the spans with a name, in the order they ended.
func (s *stage) named(name string) (found []tracetest.SpanStub) {
	for _, span := range s.exported.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

// one returns the only span with a name.
func (s *stage) one(name string) tracetest.SpanStub {
	s.Helper()
	found := s.named(name)
	if len(found) != 1 {
		s.Fatalf("%d spans are named %q, want 1: %s", len(found), name, s.names())
	}
	return found[0]
}

func (s *stage) names() (names []string) {
	for _, span := range s.exported.GetSpans() {
		names = append(names, span.Name)
	}
	return names
}

// value returns an attribute of a span as text, "" without it.
func value(span tracetest.SpanStub, name string) string {
	for _, a := range span.Attributes {
		if a.Key == attribute.Key(name) {
			return a.Value.String()
		}
	}
	return ""
}

// linked reports whether a span has a link to a context.
func linked(span tracetest.SpanStub, to trace.SpanContext) bool {
	for _, link := range span.Links {
		if link.SpanContext.TraceID() == to.TraceID() && link.SpanContext.SpanID() == to.SpanID() {
			return true
		}
	}
	return false
}
