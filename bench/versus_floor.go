package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

//go:embed versus_floor.lua
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
	left := 0
	keys := s.rdb.Scan(ctx, 0, engine.KeysFrom(s.root+":"), 1000).Iterator()
	for keys.Next(ctx) {
		if keys.Val() != s.bell() {
			left++
		}
	}
	if err := keys.Err(); err != nil {
		return err
	}
	if left > 0 {
		return fmt.Errorf("the bare script left %d keys of %d tasks", left, n)
	}
	return nil
}

func (s *floorSide) Close() error { return s.rdb.Close() }
