package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

// MicroConfig adjusts Micro. The zero value is ready to use.
type MicroConfig struct {
	// Rounds is how often each call is measured. The default is 5.
	Rounds int
	// Tasks is how many tasks a round measures each call with. The default is 5,000.
	// Small batches use fewer tasks: at most 1,000 calls.
	Tasks int
}

func (c *MicroConfig) complete() {
	c.Rounds, c.Tasks = cmp.Or(c.Rounds, 5), cmp.Or(c.Tasks, 5000)
}

// batches are the batch sizes of enqueue, fetch and settle.
var batches = []int{1, 8, 50, 500}

// Micro measures the cost of one call to Redis: the CPU time of its main thread, the time within
// scripts, and the median call. One client makes the calls, through package queue, and the server
// does nothing else. Tasks have 100 random bytes and a deadline.
//
//   - enqueue, fetch, settle: for one task, in batches of 1, 8, 50 and 500. Settle completes,
//     and fetches no further tasks.
//   - curfew_enqueue: for one call of this function, which enqueues a task of another language.
//   - sweep: for one pending task that is past its deadline, 100 a call.
//   - fetch of nothing, sweep of nothing, heartbeat: for one call, in an empty namespace.
//   - suspend: for one agent, which creates 10 children and waits for all of them.
//   - settle and wake: for one agent, whose 10 children are completed, which wakes it.
//
// The figures are of one machine in one moment, so measure two versions in turns. Compare the CPU time of large calls, because
// other programs interrupt them, and the median of small calls: a third of their CPU time is sockets, and depends on how idle
// the machine is. Package internal/test/luacount counts the Lua instructions of a call, which are the same everywhere.
//
// Micro empties the server, and resets its statistics.
func Micro(ctx context.Context, rdb redis.UniversalClient, c MicroConfig) (MicroReport, error) {
	c.complete()
	m := &micro{rdb: rdb, tasks: c.Tasks, watch: stopwatch{rdb}}
	for range c.Rounds {
		if err := m.round(ctx); err != nil {
			return MicroReport{}, err
		}
	}
	version, err := serverVersion(ctx, rdb)
	return m.report(version, c), err
}

// micro is a running measurement of Micro.
type micro struct {
	rdb   redis.UniversalClient
	tasks int
	watch stopwatch

	q   *queue.Queue
	seq int64 // of the last fetch

	calls   []callName // in the order first measured
	samples map[callName][]sample
}

// callName identifies a measured call.
type callName struct {
	call  string
	batch int
	per   string
}

// sample is one measurement of a call, in µs for one of its unit.
type sample struct {
	cpu, script float64
	median      float64 // of a whole call
}

func (m *micro) round(ctx context.Context) error {
	steps := []func(context.Context) error{m.idleCalls}
	for _, batch := range batches {
		steps = append(steps, func(ctx context.Context) error { return m.taskCalls(ctx, batch) })
	}
	for _, step := range append(steps, m.function, m.sweep, m.agentCalls) {
		if err := m.open(ctx); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open empties the server and opens a namespace.
func (m *micro) open(ctx context.Context) (err error) {
	m.seq = 0
	m.q, err = open(ctx, m.rdb, 1)
	return err
}

// measure measures a step that handles n tasks, calls or agents, as name.per says.
func (m *micro) measure(ctx context.Context, name callName, n int, step func() error) error {
	u, err := m.watch.time(ctx, step)
	if err != nil {
		return fmt.Errorf("%s %d: %w", name.call, name.batch, err)
	}
	if m.samples == nil {
		m.samples = map[callName][]sample{}
	}
	if !slices.Contains(m.calls, name) {
		m.calls = append(m.calls, name)
	}
	of := float64(n)
	m.samples[name] = append(m.samples[name], sample{cpu: u.cpu / of, script: u.script / of, median: u.median})
	return nil
}
