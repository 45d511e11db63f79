package curfewtest

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Config adjusts a Stage. The zero value is ready to use.
type Config struct {
	// Start is where the clock stands at first. Defaults to the present, so that
	// deadlines made from time.Now fit; an instant of your own makes a test the same
	// every day.
	Start time.Time
	// Queue is the namespace. Its Namespace begins the name, which goes on with a random
	// part; its Logger defaults to the log of the test. Library is not taken over.
	Queue queue.Config
	// Worker is the worker. As long as it names no queues, tasks are taken from all
	// there are, in the order of their names.
	Worker worker.Config
	// MaxRuns is how many tasks Drain and DrainAll run before they say that it will
	// never end. Defaults to 1000.
	MaxRuns int
	// Client is the Redis to use instead of the embedded server. The keys of the
	// namespace are deleted when the test ends, no others are touched.
	Client redis.UniversalClient
}

// Stage is a namespace of a test's own, a worker, and a clock that stands still until
// the test moves it.
//
// Methods that begin with Assert report and let the test go on; all others end it if
// they cannot do what they say.
type Stage struct {
	// Queue is for the code under test.
	Queue *queue.Queue
	// Worker runs the handlers. Register them here; or put here the worker that the
	// program makes for itself, from Queue: then tasks are taken from its queues only.
	Worker *worker.Worker

	tb      testing.TB
	ctx     context.Context
	config  Config
	own     *worker.Worker // the one made here
	control clock

	moving sync.Mutex // one move of the clock at a time
	mu     sync.Mutex
	now    time.Time
	acting map[*act]bool // the attempts that run
	follow map[*worker.Worker]bool
}

// New makes a stage and ends it with the test. Give no config, or one.
func New(tb testing.TB, config ...Config) *Stage {
	if tb == nil {
		panic("curfewtest: New needs the test that the stage is for")
	}
	tb.Helper()
	// A test's context ends before its clean-up, which may want to look too.
	s := &Stage{tb: tb, ctx: context.WithoutCancel(tb.Context()), acting: map[*act]bool{}, follow: map[*worker.Worker]bool{}}
	switch len(config) {
	case 0:
	case 1:
		s.config = config[0]
	default:
		tb.Fatalf("curfewtest: New takes one Config, not %d", len(config))
	}
	if s.config.MaxRuns <= 0 {
		s.config.MaxRuns = 1000
	}
	if s.config.Start.IsZero() {
		s.config.Start = time.Now()
	}
	s.now = time.UnixMilli(s.config.Start.UnixMilli()) // Redis keeps ms
	s.name(&s.config.Queue)

	var rdb redis.UniversalClient
	var err error
	if rdb, s.control, err = s.serve(); err == nil {
		err = s.control.set(s.ctx, s.now)
	}
	if err == nil {
		s.Queue, err = queue.Open(s.ctx, rdb, s.config.Queue)
	}
	if err != nil {
		tb.Fatalf("curfewtest: %v", err)
	}
	s.Worker = worker.New(s.Queue, s.config.Worker)
	s.own = s.Worker
	s.following(s.own)
	return s
}

func (s *Stage) name(c *queue.Config) {
	if c.Namespace == "" {
		c.Namespace = "curfewtest"
	}
	c.Namespace += "-" + strings.ToLower(rand.Text()[:12])
	if c.Logger == nil {
		out := &output{tb: s.tb}
		s.tb.Cleanup(out.end)
		c.Logger = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: timeless}))
	}
}

// timeless leaves the time of a log line out: it is not the stage's.
func timeless(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && len(groups) == 0 {
		return slog.Attr{}
	}
	return a
}

// output is the log of a test, which must not be written to after its end.
type output struct {
	mu    sync.Mutex
	tb    testing.TB
	ended bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return len(p), nil
	}
	if _, err := stacks.WriteString(o.tb.Output(), string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// stacks undoes what a log line does to a panic's stack, which nobody could read.
var stacks = strings.NewReplacer(`\n`, "\n", `\t`, "\t")

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
}
