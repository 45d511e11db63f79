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
)

//go:embed versus_floor.lua
var floorSource string

var floorScript = redis.NewScript(floorSource)

// floorBatch is how many tasks a call of the bare script is about.
const floorBatch = 50

// floorSide is a bare script in a comparison: it stores payloads and moves ids, 50 tasks a
// call, and knows nothing of deadlines, retries, leases or events.
type floorSide struct {
	rdb   redis.UniversalClient
	calls [][]any
}

func (s *floorSide) begin(ctx context.Context) error { return floorScript.Load(ctx, s.rdb).Err() }

func (s *floorSide) run(ctx context.Context, args ...any) *redis.Cmd {
	return floorScript.EvalSha(ctx, s.rdb, []string{"floor"}, args...)
}

func (s *floorSide) prepare(n int) int {
	s.calls = nil
	for i := range n {
		if i%floorBatch == 0 {
			s.calls = append(s.calls, []any{"put"})
		}
		last := &s.calls[len(s.calls)-1]
		*last = append(*last, strconv.Itoa(i), payload())
	}
	return len(s.calls)
}

func (s *floorSide) put(ctx context.Context, i int) error { return s.run(ctx, s.calls[i]...).Err() }

func (s *floorSide) putAll(ctx context.Context, calls int) error {
	return fromGoroutines(calls, floorWorkers, func(i int) error { return s.put(ctx, i) })
}

// floorWorkers is enough to keep Redis busy.
const floorWorkers = 4

func (s *floorSide) work(ctx context.Context, handled func()) (crew, error) {
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
	return crew{failed, func() error {
		stop()
		group.Wait()
		close(failed)
		return <-failed
	}}, nil
}

// drain settles what the call before took and takes the next tasks, until the context ends.
func (s *floorSide) drain(ctx context.Context, handled func()) error {
	var done []any
	for ctx.Err() == nil || len(done) > 0 {
		taken, err := s.run(context.WithoutCancel(ctx), append([]any{"work", floorBatch}, done...)...).Slice()
		if err != nil {
			return err
		}
		if done = nil; len(taken) == 0 {
			pause(ctx, time.Millisecond)
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

func (s *floorSide) check(ctx context.Context, n int) error {
	left, err := s.rdb.DBSize(ctx).Result()
	if err == nil && left > 0 {
		err = fmt.Errorf("the bare script left %d keys of %d tasks", left, n)
	}
	return err
}

func (s *floorSide) end() error { return nil }
