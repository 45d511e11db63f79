package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

// MicroConfig adjusts Micro. The zero value is ready to use.
type MicroConfig struct {
	// Rounds is how often each call is measured. Defaults to 5.
	Rounds int
	// Tasks is how many tasks a round measures each call with. Defaults to 5,000.
	// Small batches take fewer: no more than 1,000 calls.
	Tasks int
}

func (c *MicroConfig) complete() {
	if c.Rounds == 0 {
		c.Rounds = 5
	}
	if c.Tasks == 0 {
		c.Tasks = 5000
	}
}

// batches are the sizes that enqueue, fetch and settle are measured with.
var batches = []int{1, 8, 50, 500}

// Micro measures what one call costs Redis: the CPU time of its main thread, the time within
// scripts, and the median call, each with one client and nothing else going on. The calls
// are made through package queue, with tasks of 100 random bytes and a deadline.
//
//   - enqueue, fetch, settle: in batches of 1, 8, 50 and 500, by the task. Settle
//     completes, and asks for no further tasks.
//   - sweep: 100 a look, of pending tasks that are past their deadline, by the task.
//   - fetch of nothing, sweep of nothing, heartbeat: of an empty namespace, by the call.
//   - suspend: an agent makes 10 children and waits for all of them, by the agent.
//   - settle and wake: the 10 children of one agent are completed, which wakes it, by the
//     agent.
//
// The ratios are CPU time, and the median call by the task, by those of one loop of a
// reference script with fixed commands (reference.lua). It is measured before and after each
// call, so that ratios move less with the machine. CPU time is the better measure of large
// calls, which are interrupted now and then. Of small calls a third is sockets, and that part
// depends on how idle the machine is: look at the median.
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

// micro is a measurement under way.
type micro struct {
	rdb   redis.UniversalClient
	tasks int
	watch stopwatch

	q    *queue.Queue
	seq  int64 // of the last fetch
	unit use   // a loop of the reference script, as measured last

	units   []float64  // CPU times of all of them
	calls   []callName // in the order first measured
	samples map[callName][]sample
}

// callName says what was measured.
type callName struct {
	call  string
	batch int
	per   string
}

// perCall is how many of the unit one call is about.
func (n callName) perCall() float64 {
	if n.per == "task" {
		return float64(n.batch)
	}
	return 1
}

// sample is one measurement of a call, in µs by the unit of its name.
type sample struct {
	cpu, script float64
	median      float64 // of a call
	ratio       float64 // CPU by the reference's CPU
	medianRatio float64 // median by the reference's, by the unit too
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
	for _, step := range append(steps, m.sweep, m.agentCalls) {
		if err := m.open(ctx); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open begins with an empty server.
func (m *micro) open(ctx context.Context) (err error) {
	m.seq = 0
	m.q, err = open(ctx, m.rdb, 1)
	return err
}

// measure measures a step that is about n tasks, calls or agents, whatever name.per says.
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
	s.ratio = s.cpu / ((m.unit.cpu + unit.cpu) / 2)
	s.medianRatio = s.median / name.perCall() / ((m.unit.median + unit.median) / 2)
	m.unit, m.units = unit, append(m.units, unit.cpu)
	if m.samples == nil {
		m.samples = map[callName][]sample{}
	}
	if !slices.Contains(m.calls, name) {
		m.calls = append(m.calls, name)
	}
	m.samples[name] = append(m.samples[name], s)
	return nil
}
