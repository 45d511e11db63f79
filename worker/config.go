package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Config adjusts a Worker. The zero value is ready to use.
type Config struct {
	// Concurrency is the greatest number of handlers that run at the same time. Defaults to 10.
	Concurrency int
	// Queues holds the queues to take tasks from, with their weights. If two queues both have
	// tasks, a queue of weight 6 gives six times as many as a queue of weight 1.
	// Defaults to {"default": 1}.
	Queues map[string]int
	// Strict lists the queues to take tasks from in strict order: the second queue gives
	// tasks only when the first has none. It can have 256 queues, which is how many one call
	// reads. Set Queues or Strict, not both.
	Strict []string
	// TaskTimeout limits the run of a handler; 0 means no limit. If it is 0, Run uses the
	// environment variable WORKER_TASK_TIMEOUT. At the limit the handler's context ends; if the
	// handler then returns an error, the attempt has timed out. TaskTimeout is independent of
	// ShutdownTimeout.
	TaskTimeout time.Duration
	// ShutdownTimeout is the time that handlers have to finish after Run's context has ended.
	// Defaults to 30 s.
	ShutdownTimeout time.Duration
	// ShutdownGrace is the time that handlers have to return after ShutdownTimeout, when their own
	// contexts have ended. Defaults to 1 s.
	ShutdownGrace time.Duration
	// Lease is the time for which a heartbeat proves that the worker is alive. When the lease
	// expires, its tasks are given to other workers. Must be at least 1 s. Defaults to 15 s.
	Lease time.Duration
	// Beat is the time between two heartbeats. Must be shorter than Lease. Defaults to a third
	// of Lease.
	Beat time.Duration
	// NoReaper makes the worker run no reaper. By default the workers of a process that use the
	// same opened namespace run one reaper together.
	NoReaper bool
	// Name is a prefix of the worker's id, before host, process and a random part. A character other
	// than a letter, a digit, or one of . _ - becomes _.
	Name string
	// Program identifies the code of the handlers: up to 64 letters, digits, and . _ -. An agent that
	// one program cannot replay goes on when a worker with another Program starts. Defaults to a
	// digest of the executable.
	Program string
	// Logger defaults to the queue's.
	Logger *slog.Logger
}

func (c *Config) complete(q *queue.Queue) {
	setDefault := func(d *time.Duration, to time.Duration) {
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
	setDefault(&c.ShutdownTimeout, 30*time.Second)
	setDefault(&c.ShutdownGrace, time.Second)
	setDefault(&c.Lease, 15*time.Second)
	setDefault(&c.Beat, c.Lease/3)
	if c.Program == "" {
		c.Program = executable()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
		if q != nil {
			c.Logger = q.Logger()
		}
	}
}

// mostStrict is how many queues one call reads (lua/task/claim.lua). Calls for more queues take turns with them.
const mostStrict = 256

// check validates the config before anything starts.
func (c *Config) check() error {
	if err := c.checkDurations(); err != nil {
		return err
	}
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("worker: Config.Concurrency is %d: it must not be negative", c.Concurrency)
	case c.Beat >= c.Lease:
		return fmt.Errorf("worker: Config.Beat (%v) must be shorter than Config.Lease (%v)", c.Beat, c.Lease)
	case c.Lease < time.Second:
		return fmt.Errorf("worker: Config.Lease is %v: it must be at least 1s", c.Lease)
	case len(c.Queues) > 0 && len(c.Strict) > 0:
		return errors.New("worker: set Config.Queues or Config.Strict, not both")
	case len(c.Strict) > mostStrict:
		return fmt.Errorf("worker: Config.Strict has %d queues: a call reads %d in their order; give fewer, or Config.Queues, which has no order", len(c.Strict), mostStrict)
	}
	if !validProgram.MatchString(c.Program) {
		return fmt.Errorf("worker: Config.Program is %q: it must be up to 64 letters, digits, and . _ -", refusal.Clip(c.Program))
	}
	for name, weight := range c.Queues {
		if weight < 1 {
			return fmt.Errorf("worker: the weight of queue %q is %d: it must be at least 1; leave out a queue that this worker must not take tasks from", name, weight)
		}
	}
	return nil
}

var validProgram = regexp.MustCompile(`^[A-Za-z0-9._-]{0,64}$`)

func (c *Config) checkDurations() error {
	for _, field := range []struct {
		name string
		d    time.Duration
	}{
		{"TaskTimeout", c.TaskTimeout}, {"ShutdownTimeout", c.ShutdownTimeout},
		{"ShutdownGrace", c.ShutdownGrace}, {"Lease", c.Lease}, {"Beat", c.Beat},
	} {
		if field.d < 0 {
			return fmt.Errorf("worker: Config.%s is %v: it must not be negative", field.name, field.d)
		}
	}
	return nil
}
