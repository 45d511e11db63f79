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
	// Start is the first instant of the clock. Defaults to the present, so that deadlines computed from
	// time.Now make sense. With a fixed instant a test gives the same results every day. In a bubble of
	// testing/synctest the present is the beginning of 2000, and an earlier Start is refused.
	Start time.Time
	// Queue configures the namespace. Its name is Namespace, which defaults to "curfewtest", and a
	// random suffix. Logger defaults to the log of the test. Library is ignored.
	Queue queue.Config
	// Worker configures the worker. If it names no queues, tasks are taken from all queues, in the order
	// of their names.
	Worker worker.Config
	// MaxRuns is the number of tasks after which Drain and DrainAll fail the test, since they might never
	// end. Defaults to 1000.
	MaxRuns int
	// Client is a Redis to use instead of the embedded server. The keys of the namespace are
	// deleted when the test ends. No other keys are touched. A bubble of testing/synctest cannot use one.
	Client redis.UniversalClient
}

// Stage is a namespace for one test, a worker, and a clock that only the test moves.
//
// Methods that begin with Assert report an error and let the test continue. All others end the test if
// they fail.
type Stage struct {
	// Queue is the namespace. Pass it to the code under test.
	Queue *queue.Queue
	// Worker runs the handlers. Register them here, or replace Worker by the worker that the program
	// makes from Queue. Then tasks are taken from the queues of that worker only.
	Worker *worker.Worker

	tb      testing.TB
	ctx     context.Context
	config  Config
	own     *worker.Worker // the one made here
	control clock
	bubble  bool // New was called in a bubble of testing/synctest, whose clock is that of the stage

	moving sync.Mutex // one move of the clock at a time
	mu     sync.Mutex
	now    time.Time
	acting map[*act]bool // the running attempts
	follow map[*worker.Worker]bool
}

// New returns a stage, which ends with the test. Pass at most one config.
func New(tb testing.TB, config ...Config) *Stage {
	if tb == nil {
		panic("curfewtest: New needs a testing.TB, and got nil")
	}
	tb.Helper()
	// The context of a test ends before its clean-up, which can still use the stage.
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
	s.now = inMS(s.config.Start)
	s.name(&s.config.Queue)
	s.bubble = inBubble()

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

// timeless removes the time of a log line, because the real time differs from the stage's clock.
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

// stacks replaces the escapes in the stack of a panic, to make it readable.
var stacks = strings.NewReplacer(`\n`, "\n", `\t`, "\t")

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
}
