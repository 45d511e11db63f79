package worker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Config adjusts a Worker. The zero value is ready to use.
type Config struct {
	// Concurrency is how many handlers run at once. Defaults to 10.
	Concurrency int
	// Queues are the queues to take tasks from, with their weights. Of two queues that
	// both have tasks, one of weight 6 gives six times as many as one of weight 1.
	// Defaults to {"default": 1}.
	Queues map[string]int
	// Strict are the queues to take tasks from in strict order: the second gives tasks
	// only when the first has none. Set Queues or Strict, not both.
	Strict []string
	// TaskTimeout is how long a handler may run, 0 for no limit. If it is 0, Run takes
	// the environment variable WORKER_TASK_TIMEOUT. If a handler's context ends by it and
	// the handler returns an error, the attempt has timed out. It is independent of
	// ShutdownTimeout.
	TaskTimeout time.Duration
	// ShutdownTimeout is how long handlers may still run once Run's context has ended.
	// Defaults to 30 s.
	ShutdownTimeout time.Duration
	// ShutdownGrace is how long they then have to return after their own contexts have
	// ended. Defaults to 1 s.
	ShutdownGrace time.Duration
	// Lease is how long the worker counts as alive after each heartbeat. When it runs
	// out, its tasks are given to other workers. Defaults to 15 s.
	Lease time.Duration
	// Beat is the interval of the heartbeats. Defaults to a third of Lease.
	Beat time.Duration
	// NoReaper says not to run a reaper. A worker otherwise runs one.
	NoReaper bool
	// Name is the start of the worker's id. Host, process and a random part follow.
	Name string
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
	if c.Logger == nil {
		c.Logger = slog.Default()
		if q != nil {
			c.Logger = q.Logger()
		}
	}
}

// check says what is wrong with the config. It is called before anything starts.
func (c *Config) check() error {
	if err := c.checkDurations(); err != nil {
		return err
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

func (c *Config) checkDurations() error {
	for _, field := range []struct {
		name string
		d    time.Duration
	}{
		{"TaskTimeout", c.TaskTimeout}, {"ShutdownTimeout", c.ShutdownTimeout},
		{"ShutdownGrace", c.ShutdownGrace}, {"Lease", c.Lease}, {"Beat", c.Beat},
	} {
		if field.d < 0 {
			return fmt.Errorf("worker: Config.%s is %v, it must not be negative", field.name, field.d)
		}
	}
	return nil
}
