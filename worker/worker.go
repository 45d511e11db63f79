package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Config adjusts a Worker. The zero value is ready to use.
type Config struct {
	// Concurrency is how many handlers run at once. Defaults to 10.
	Concurrency int
	// Queues are the queues to take from, with their weights: of two that both have
	// work, one of weight 6 gives six times as many tasks as one of weight 1.
	// Defaults to {"default": 1}.
	Queues map[string]int
	// Strict are the queues to take from in strict order instead: the second only
	// gives what the first cannot. Set Queues or Strict, not both.
	Strict []string
	// TaskTimeout is how long a handler may run, 0 for no limit. If it is 0, Run takes
	// the environment's WORKER_TASK_TIMEOUT. A handler whose context ended by it and
	// that returns an error has timed out. It is independent of ShutdownTimeout.
	TaskTimeout time.Duration
	// ShutdownTimeout is how long handlers may go on once Run's context has ended.
	// Defaults to 30 s.
	ShutdownTimeout time.Duration
	// ShutdownGrace is how long they then have to return after their own contexts
	// have ended. Defaults to 1 s.
	ShutdownGrace time.Duration
	// Lease is how long the worker counts as alive without a word from it. What a
	// dead one held is given to others. Defaults to 15 s.
	Lease time.Duration
	// Beat is the interval of that word. Defaults to a third of Lease.
	Beat time.Duration
	// NoReaper leaves the reaper out that a worker otherwise runs.
	NoReaper bool
	// Name begins the worker's id, which goes on with host, process and a random part.
	Name string
	// Logger defaults to the queue's.
	Logger *slog.Logger
}

func (c *Config) complete(q *queue.Queue) {
	defaults := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	if c.Concurrency == 0 {
		c.Concurrency = 10
	}
	if len(c.Queues) == 0 && len(c.Strict) == 0 {
		c.Queues = map[string]int{"default": 1}
	}
	defaults(&c.ShutdownTimeout, 30*time.Second)
	defaults(&c.ShutdownGrace, time.Second)
	defaults(&c.Lease, 15*time.Second)
	defaults(&c.Beat, c.Lease/3)
	if c.Logger == nil {
		c.Logger = q.Logger()
	}
}

// check says what cannot work. It is asked before anything starts.
func (c *Config) check() error {
	for _, span := range []struct {
		name string
		d    time.Duration
	}{
		{"TaskTimeout", c.TaskTimeout}, {"ShutdownTimeout", c.ShutdownTimeout},
		{"ShutdownGrace", c.ShutdownGrace}, {"Lease", c.Lease}, {"Beat", c.Beat},
	} {
		if span.d < 0 {
			return fmt.Errorf("worker: Config.%s is %v, it must not be negative", span.name, span.d)
		}
	}
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("worker: Config.Concurrency is %d, it must not be negative", c.Concurrency)
	case c.Beat >= c.Lease:
		return fmt.Errorf("worker: Config.Beat (%v) must be shorter than Config.Lease (%v)", c.Beat, c.Lease)
	case c.Lease < time.Second:
		return fmt.Errorf("worker: Config.Lease is %v, it must be at least 1s", c.Lease)
	case len(c.Queues) > 0 && len(c.Strict) > 0:
		return errors.New("worker: set Config.Queues or Config.Strict, not both")
	}
	for name, weight := range c.Queues {
		if weight < 1 {
			return fmt.Errorf("worker: the weight of queue %q is %d, it must be at least 1: leave out a queue that is not to be worked on", name, weight)
		}
	}
	return nil
}

// Worker runs handlers. Make it with New, give it handlers, and call Run once.
type Worker struct {
	q       *queue.Queue
	config  Config
	id      string
	log     *slog.Logger
	counts  counts
	unknown throttle // of kinds without a handler, by kind
	trouble throttle // of trips to Redis that failed, by partition

	mu         sync.Mutex // guards what is registered before Run
	ran        bool
	registered map[string]Handler
	defaults   map[string]queue.Defaults // by kind
	middleware []func(Handler) Handler

	// Set by Run before anything starts.
	handlers map[string]Handler
	menu     menu
	slots    *slots
	lanes    []*lane
	root     context.Context // the parent of every handler's context
	wanting  context.Context // Run's own: it ends when nothing more is wanted
	errand   context.Context // of the worker's other calls: it outlives the handlers
	stopping atomic.Bool     // nothing new is taken
	progress chan struct{}   // signalled, while stopping, when something came to an end
	errands  sync.WaitGroup  // goroutines of ours that are not handlers
}

// New makes a worker. It does nothing before Run, which also says what is wrong
// with the config.
func New(q *queue.Queue, config Config) *Worker {
	config.complete(q)
	return &Worker{
		q: q, config: config, id: newID(config.Name), log: config.Logger,
		registered: map[string]Handler{}, defaults: map[string]queue.Defaults{}, progress: make(chan struct{}, 1),
		unknown: throttle{every: time.Minute}, trouble: throttle{every: 10 * time.Second},
	}
}

// ID is the worker's name in Redis. No two workers have the same.
func (w *Worker) ID() string { return w.id }

// Queue is the namespace that it works on.
func (w *Worker) Queue() *queue.Queue { return w.q }

// newID is prefix-host-process-random, of characters that are safe in a key.
func newID(prefix string) string {
	host, _ := os.Hostname()
	parts := []string{tame(host), strconv.Itoa(os.Getpid()), strings.ToLower(rand.Text()[:10])}
	if prefix != "" {
		parts = append([]string{tame(prefix)}, parts...)
	}
	return strings.Join(parts, "-")
}

func tame(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 64)]
}
