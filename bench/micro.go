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
// The ratios are the CPU time, and the median call for one task, divided by those of one loop of a
// reference script with fixed commands (reference.lua). The median of a call with one task or none is
// divided by that of a call of the script with one loop. The script is measured before and after
// each call, so that ratios depend less on the machine. Use CPU time for large calls, because
// other programs interrupt them. Use the median for small calls: a third of their CPU time is
// sockets, and depends on how idle the machine is.
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

	q    *queue.Queue
	seq  int64 // of the last fetch
	unit unit  // the reference script, at its last measurement

	units   []float64  // the CPU times of all measurements of the reference script
	calls   []callName // in the order first measured
	samples map[callName][]sample
}

// callName identifies a measured call.
type callName struct {
	call  string
	batch int
	per   string
}

// perCall returns how many of its unit one call handles.
func (n callName) perCall() float64 {
	if n.per == "task" {
		return float64(n.batch)
	}
	return 1
}

// small reports whether a call handles one task or none. Its median is compared with a call of the reference script that has one
// loop.
func small(per string, batch int) bool { return per == "call" || per == "task" && batch == 1 }

// sample is one measurement of a call, in µs for one of its unit.
type sample struct {
	cpu, script float64
	median      float64 // of a whole call
	ratio       float64 // CPU divided by the reference's CPU
	medianRatio float64 // median for one of its unit, divided by the reference's
}

func (m *micro) round(ctx context.Context) error {
	var err error
	if err = m.open(ctx); err != nil {
		return err
	}
	if m.unit, err = m.watch.reference(ctx); err != nil {
		return err
	}
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
	unit, err := m.watch.reference(ctx)
	if err != nil {
		return err
	}
	of := float64(n)
	s := sample{cpu: u.cpu / of, script: u.script / of, median: u.median}
	s.ratio = s.cpu / ((m.unit.loop.cpu + unit.loop.cpu) / 2)
	if small(name.per, name.batch) {
		s.medianRatio = s.median / ((m.unit.call + unit.call) / 2)
	} else {
		s.medianRatio = s.median / name.perCall() / ((m.unit.loop.median + unit.loop.median) / 2)
	}
	m.unit, m.units = unit, append(m.units, unit.loop.cpu)
	if m.samples == nil {
		m.samples = map[callName][]sample{}
	}
	if !slices.Contains(m.calls, name) {
		m.calls = append(m.calls, name)
	}
	m.samples[name] = append(m.samples[name], s)
	return nil
}
