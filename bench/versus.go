package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

// VersusConfig adjusts Versus. The zero value is ready to use.
type VersusConfig struct {
	// Tasks is how many tasks each measurement handles. Defaults to 20,000.
	Tasks int
	// Runs is how often each library is measured. Defaults to 5.
	Runs int
	// Servers is how many workers, or asynq servers, drain at once in this process, each
	// of concurrency 50. Defaults to 1.
	Servers int
}

func (c *VersusConfig) complete() {
	for field, value := range map[*int]int{&c.Tasks: 20000, &c.Runs: 5, &c.Servers: 1} {
		if *field == 0 {
			*field = value
		}
	}
}

// contender is what Versus measures: a library, or the bare scripts.
type contender interface {
	// begin opens what is needed on a server that has just been emptied.
	begin(ctx context.Context) error
	// prepare makes n tasks in this process and returns how many calls of put take them
	// to Redis.
	prepare(n int) (calls int)
	// put makes the call of number i.
	put(ctx context.Context, i int) error
	// putAll takes all that was prepared to Redis in the fastest way there is.
	putAll(ctx context.Context, calls int) error
	// work starts the workers. They call handled once for each task.
	work(ctx context.Context, handled func()) (crew, error)
	// check returns an error unless n tasks came in and all were completed.
	check(ctx context.Context, n int) error
	// end gives back what begin opened.
	end() error
}

// crew are workers that run. If they fail, failed has the error; stop ends them and
// returns when what they handled is settled.
type crew struct {
	failed <-chan error
	stop   func() error
}

// load is one measurement: how long a contender takes for n tasks, on an empty server.
type load struct {
	name, what string
	run        func(ctx context.Context, c contender, n int) (time.Duration, error)
}

var loads = []load{
	{"enqueue_16", "enqueue one by one, 16 goroutines", enqueueFrom(16)},
	{"enqueue_64", "enqueue one by one, 64 goroutines", enqueueFrom(64)},
	{"enqueue_lists", "enqueue in lists", enqueueLists},
	{"drain", "drain, concurrency 50", drainAll},
	{"enqueue_and_drain", "enqueue while draining", enqueueAndDrain},
}

// Versus puts the same loads on Curfew, on asynq and on bare scripts, on the Redis at an
// address, which it empties again and again. They take turns at each load: Curfew, asynq,
// scripts, and after the last load again from the first, so that all see the same machine. A
// round with a tenth of the tasks comes first and does not count.
//
// Every task has a payload of 100 random bytes. Both libraries have their defaults, but quiet
// logs: Curfew with its events, heartbeats, reaper and retention, and a deadline for each
// task; asynq with its heartbeats, forwarder, janitor and a timeout of 30 minutes for each
// task, and without retention. Tasks are made before the clock starts.
//
//   - enqueue_16, enqueue_64: one call a task, from so many goroutines.
//   - enqueue_lists: one EnqueueAll of all tasks. asynq has no call for lists, so one call
//     a task from 64 goroutines stands for it.
//   - drain: from the start of the workers until the last handler is called. Handlers do
//     nothing.
//   - enqueue_and_drain: 16 goroutines enqueue one by one, workers begin when a twentieth
//     of the tasks is in (an asynq server that finds nothing sleeps for a second), and
//     the clock stops when the last handler is called.
//
// The bare scripts are the floor: what Redis can do for calls of 50 tasks that store and
// remove them and know nothing else. See versus_floor.go.
func Versus(ctx context.Context, address string, c VersusConfig) (Comparison, error) {
	c.complete()
	rdb := redis.NewClient(&redis.Options{Addr: address, PoolSize: 256})
	defer rdb.Close()
	contenders := []contender{
		&curfewSide{address: address, servers: c.Servers},
		&asynqSide{address: address, servers: c.Servers},
		&floorSide{rdb: rdb},
	}
	if _, err := round(ctx, rdb, contenders, max(c.Tasks/10, 1)); err != nil {
		return Comparison{}, err
	}
	all := []rates{{}, {}, {}}
	for range c.Runs {
		of, err := round(ctx, rdb, contenders, c.Tasks)
		if err != nil {
			return Comparison{}, err
		}
		for i := range all {
			for name := range of[i] {
				all[i][name] = append(all[i][name], of[i][name]...)
			}
		}
	}
	version, err := serverVersion(ctx, rdb)
	return compare(c, version, all[0], all[1], all[2]), err
}

// rates are tasks a second, by the name of the load, one for each run.
type rates map[string][]float64

// round measures each load once with each contender.
func round(ctx context.Context, rdb redis.UniversalClient, contenders []contender, n int) ([]rates, error) {
	of := make([]rates, len(contenders))
	for _, load := range loads {
		for i, c := range contenders {
			rate, err := load.measure(ctx, rdb, c, n)
			if err != nil {
				return nil, err
			}
			if of[i] == nil {
				of[i] = rates{}
			}
			of[i][load.name] = []float64{rate}
		}
	}
	return of, nil
}

// measure returns the tasks a second of one turn of a contender.
func (l load) measure(ctx context.Context, rdb redis.UniversalClient, c contender, n int) (float64, error) {
	if err := errors.Join(rdb.FlushAll(ctx).Err(), c.begin(ctx)); err != nil {
		return 0, err
	}
	took, err := l.run(ctx, c, n)
	if err = errors.Join(err, c.end()); err != nil {
		return 0, fmt.Errorf("%s: %w", l.what, err)
	}
	return float64(n) / took.Seconds(), nil
}

func enqueueFrom(goroutines int) func(context.Context, contender, int) (time.Duration, error) {
	return func(ctx context.Context, c contender, n int) (time.Duration, error) {
		calls := c.prepare(n)
		start := clock()
		err := fromGoroutines(calls, goroutines, func(i int) error { return c.put(ctx, i) })
		return time.Since(start), err
	}
}

func enqueueLists(ctx context.Context, c contender, n int) (time.Duration, error) {
	calls := c.prepare(n)
	start := clock()
	err := c.putAll(ctx, calls)
	return time.Since(start), err
}

func drainAll(ctx context.Context, c contender, n int) (time.Duration, error) {
	if err := c.putAll(ctx, c.prepare(n)); err != nil {
		return 0, err
	}
	all := newCountdown(n)
	start := clock()
	workers, err := c.work(ctx, all.one)
	if err != nil {
		return 0, err
	}
	err = all.wait(ctx, workers.failed)
	took := time.Since(start)
	return took, errors.Join(err, workers.stop(), c.check(ctx, n))
}

func enqueueAndDrain(ctx context.Context, c contender, n int) (time.Duration, error) {
	calls := c.prepare(n)
	all, some := newCountdown(n), newCountdown(max(calls/20, 1))
	failed := make(chan error, 1)
	start := clock()
	go func() {
		err := fromGoroutines(calls, 16, func(i int) error {
			defer some.one()
			return c.put(ctx, i)
		})
		if err != nil {
			failed <- err
		}
	}()
	if err := some.wait(ctx, failed); err != nil {
		return 0, err
	}
	workers, err := c.work(ctx, all.one)
	if err != nil {
		return 0, err
	}
	err = all.wait(ctx, failed, workers.failed)
	took := time.Since(start)
	return took, errors.Join(err, workers.stop(), c.check(ctx, n))
}

// clock is the beginning of a measurement: the garbage of the one before is not its.
func clock() time.Time {
	runtime.GC()
	return time.Now()
}
