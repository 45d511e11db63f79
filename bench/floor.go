package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

//go:embed floor.lua
var floorSource string

var floorScript = redis.NewScript(floorSource)

// floorBatch is how many tasks a call of the bare script handles.
const floorBatch = 50

// floorName is the name of the floor, which has a column of its own form.
const floorName = "floor"

// Floor returns a System of bare scripts, which shows the most that Redis can do for the same
// load. It stores payloads and moves ids, 50 tasks a call, and has no retries, limits or records.
// It wakes a worker by a list, polls once a millisecond for passed deadlines and ended leases, and
// writes passed deadlines to a stream. Its leases last 15 s and are renewed every second.
func Floor() System { return &floorSide{} }

// floorSide is Floor in a comparison.
type floorSide struct {
	rdb   redis.UniversalClient
	root  string        // prefix of the keys
	ahead time.Duration // how much the server's clock is ahead of this machine's
	calls [][]any
}

func (s *floorSide) Name() string    { return floorName }
func (s *floorSide) Version() string { return "" }

func (s *floorSide) Prefixes(namespace string) []string { return []string{namespace + "-floor:"} }

func (s *floorSide) Open(ctx context.Context, at Place) (err error) {
	s.root = at.Namespace + "-floor"
	options, err := at.options()
	if err != nil {
		return err
	}
	options.PoolSize = 64
	s.rdb = redis.NewClient(options)
	err = errors.Join(floorScript.Load(ctx, s.rdb).Err(), floorDue.Load(ctx, s.rdb).Err(), s.setClock(ctx))
	if err != nil {
		s.rdb.Close()
	}
	return err
}

func (s *floorSide) run(ctx context.Context, args ...any) *redis.Cmd {
	return floorScript.EvalSha(ctx, s.rdb, []string{s.root}, args...)
}

func (s *floorSide) Prepare(payloads [][]byte) int {
	s.calls = nil
	for i, payload := range payloads {
		if i%floorBatch == 0 {
			s.calls = append(s.calls, []any{"put"})
		}
		last := &s.calls[len(s.calls)-1]
		*last = append(*last, strconv.Itoa(i), payload)
	}
	return len(s.calls)
}

func (s *floorSide) Enqueue(ctx context.Context, i int) error {
	return s.run(ctx, s.calls[i]...).Err()
}

func (s *floorSide) EnqueueAll(ctx context.Context) error {
	return fromGoroutines(len(s.calls), floorWorkers, func(i int) error { return s.Enqueue(ctx, i) })
}

// floorWorkers is enough to keep Redis busy.
const floorWorkers = 4

func (s *floorSide) Work(ctx context.Context, _ Workers, handled func()) (Crew, error) {
	ctx, stop := context.WithCancel(ctx)
	failed := make(chan error, floorWorkers)
	var group sync.WaitGroup
	for range floorWorkers {
		group.Go(func() {
			if err := s.drain(ctx, handled); err != nil {
				failed <- err
			}
		})
	}
	return Crew{failed, func() error {
		stop()
		for range floorWorkers {
			s.rdb.RPush(context.WithoutCancel(ctx), s.bell(), 0) // wake the waiting workers
		}
		group.Wait()
		close(failed)
		return <-failed
	}}, nil
}

// drain settles the tasks of the previous call and takes the next ones, until the context ends.
func (s *floorSide) drain(ctx context.Context, handled func()) error {
	var done []any
	for ctx.Err() == nil || len(done) > 0 {
		taken, err := s.run(context.WithoutCancel(ctx), append([]any{"work", floorBatch}, done...)...).Slice()
		if err != nil {
			return err
		}
		if done = nil; len(taken) == 0 {
			if err := s.listen(ctx); err != nil {
				return err
			}
			continue
		}
		ids, isList := taken[0].([]any)
		if !isList {
			return errors.New("the script did not return a list of ids")
		}
		done = ids
		for range done {
			handled()
		}
	}
	return nil
}

// bell is the list on which a worker without work waits.
func (s *floorSide) bell() string { return s.root + ":bell" }

// listen waits for work, for at most a second.
func (s *floorSide) listen(ctx context.Context) error {
	err := s.rdb.BLPop(context.WithoutCancel(ctx), time.Second, s.bell()).Err()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// Check fails if keys are left: the script keeps nothing of a completed task.
func (s *floorSide) Check(ctx context.Context, n int) error {
	open := 0
	keys := s.rdb.Scan(ctx, 0, engine.KeysFrom(s.root+":"), 1000).Iterator()
	for keys.Next(ctx) {
		if keys.Val() != s.bell() {
			open++
		}
	}
	if err := keys.Err(); err != nil {
		return err
	}
	if open > 0 {
		return fmt.Errorf("the bare script left %d keys of %d tasks", open, n)
	}
	return nil
}

func (s *floorSide) Close() error { return s.rdb.Close() }

//go:embed floor_due.lua
var floorDueSource string

var floorDue = redis.NewScript(floorDueSource)

// setClock measures how much the server's clock is ahead of this machine's. The result can only
// be too small, so nothing is taken before its time.
func (s *floorSide) setClock(ctx context.Context) error {
	at, err := s.rdb.Time(ctx).Result()
	s.ahead = time.Until(at)
	return err
}

func (s *floorSide) now() time.Time { return time.Now().Add(s.ahead) }

// takeDue removes the entries of a list that are due, and returns them.
func (s *floorSide) takeDue(ctx context.Context, list string) ([]ending, error) {
	due, err := floorDue.EvalSha(ctx, s.rdb, []string{list}, s.now().UnixMilli(), 1000).StringSlice()
	if err != nil {
		return nil, err
	}
	var ends []ending
	for pair := range slices.Chunk(due, 2) {
		ms, err := strconv.ParseInt(pair[1], 10, 64)
		if err != nil {
			return nil, err
		}
		ends = append(ends, ending{pair[0], time.UnixMilli(ms)})
	}
	return ends, nil
}

// tell writes ends to the stream that the observer reads.
func (s *floorSide) tell(ctx context.Context, ends ...ending) error {
	if len(ends) == 0 {
		return nil
	}
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, e := range ends {
			p.XAdd(ctx, &redis.XAddArgs{Stream: s.events(), Values: []any{"task", e.task, "due", e.due.UnixMilli()}})
		}
		return nil
	})
	return err
}

// PendingLags polls for due tasks once a millisecond.
func (s *floorSide) PendingLags(ctx context.Context, l DeadlineLoad) ([]time.Duration, error) {
	if err := s.far(ctx, l.Others); err != nil {
		return nil, err
	}
	start, lead := s.now(), leadOf(l.Pending)
	err := s.due(ctx, "due", l.Pending, func(i int) time.Time {
		return start.Add(lead + startOf(i, l.Pending, l.Over))
	})
	if err != nil {
		return nil, err
	}
	crew := s.eachMS(ctx, func(ctx context.Context) error {
		ends, err := s.takeDue(ctx, s.deadlines())
		if err != nil {
			return err
		}
		return s.tell(ctx, ends...)
	})
	lags, err := s.observe(ctx, l.Pending, lead+l.Over+patience)
	if stopped := crew.Stop(); err == nil {
		err = stopped
	}
	return lags, err
}

// RunningLags uses contexts with deadlines, and writes each end to the stream.
func (s *floorSide) RunningLags(ctx context.Context, l DeadlineLoad) (RunningLags, error) {
	if err := s.far(ctx, l.Others); err != nil {
		return RunningLags{}, err
	}
	cancelled, n := newLagList(l.Running), 0
	failed := make(chan error, l.Running)
	run := func(ctx context.Context) error {
		n++
		task, deadline := strconv.Itoa(n), time.Now().Add(runFor)
		go func() {
			ctx, cancel := context.WithDeadline(ctx, deadline)
			defer cancel()
			cancelled.untilDone(ctx, deadline)
			failed <- s.tell(context.WithoutCancel(ctx), ending{task, deadline.Add(s.ahead)})
		}()
		return nil
	}
	lags, err := whileRunning(ctx, l, cancelled, run, func(ctx context.Context) ([]time.Duration, error) {
		return s.observe(ctx, l.Running, l.Over+patience)
	})
	for range n {
		if e := <-failed; err == nil {
			err = e
		}
	}
	return lags, err
}

func (s *floorSide) events() string    { return s.root + ":events" }
func (s *floorSide) deadlines() string { return s.root + ":deadlines" }
func (s *floorSide) leases() string    { return s.root + ":leases" }

// far stores n deadlines that are an hour away.
func (s *floorSide) far(ctx context.Context, n int) error {
	at := s.now().Add(time.Hour)
	return s.due(ctx, "far", n, func(int) time.Time { return at })
}

// due stores n deadlines under a name.
func (s *floorSide) due(ctx context.Context, name string, n int, at func(i int) time.Time) error {
	_, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range n {
			p.ZAdd(ctx, s.deadlines(), redis.Z{Score: float64(at(i).UnixMilli()), Member: fmt.Sprint(name, "-", i)})
		}
		return nil
	})
	return err
}

func (s *floorSide) observe(ctx context.Context, n int, within time.Duration) ([]time.Duration, error) {
	return observeStream(ctx, s.rdb, s.events(), n, within, func(entry redis.XMessage) ([]ending, error) {
		due, err := strconv.ParseInt(fmt.Sprint(entry.Values["due"]), 10, 64)
		return []ending{{fmt.Sprint(entry.Values["task"]), time.UnixMilli(due)}}, err
	})
}

// eachMS calls look once a millisecond, until it is stopped or look fails.
func (s *floorSide) eachMS(ctx context.Context, look func(ctx context.Context) error) Crew {
	ctx, stop := context.WithCancel(ctx)
	done, failed := make(chan error, 1), make(chan error, 1)
	go func() {
		var err error
		for ; err == nil && ctx.Err() == nil; pause(ctx, time.Millisecond) {
			err = look(context.WithoutCancel(ctx))
		}
		if err != nil {
			failed <- err
		}
		done <- err
	}()
	return Crew{failed, func() error {
		stop()
		return <-done
	}}
}

// Put, Hold, Take and Interval implement Recoverer.

func (s *floorSide) Put(ctx context.Context, line string) error {
	return s.rdb.RPush(ctx, s.root+":"+line, payload()).Err()
}

func (s *floorSide) Hold(ctx context.Context, line string, began func()) error {
	if err := s.rdb.LPop(ctx, s.root+":"+line).Err(); err != nil {
		return err
	}
	renew := func() error {
		until := s.now().Add(defaultLease)
		return s.rdb.ZAdd(ctx, s.leases(), redis.Z{Score: float64(until.UnixMilli()), Member: line}).Err()
	}
	err := renew()
	for began(); err == nil && ctx.Err() == nil; err = renew() {
		pause(ctx, time.Second) // as a worker of Curfew with free slots does
	}
	return err
}

func (s *floorSide) Take(ctx context.Context, _ []string, started func(line string)) (Crew, error) {
	return s.eachMS(ctx, func(ctx context.Context) error {
		expired, err := s.takeDue(ctx, s.leases())
		for _, lease := range expired {
			started(lease.task)
		}
		return err
	}), nil
}

func (s *floorSide) Interval() time.Duration { return defaultLease / 3 }
