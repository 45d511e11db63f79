package bench

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed versus_floor_due.lua
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
		if told := <-failed; err == nil {
			err = told
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
	ended, failed := make(chan error, 1), make(chan error, 1)
	go func() {
		var err error
		for ; err == nil && ctx.Err() == nil; pause(ctx, time.Millisecond) {
			err = look(context.WithoutCancel(ctx))
		}
		if err != nil {
			failed <- err
		}
		ended <- err
	}()
	return Crew{failed, func() error {
		stop()
		return <-ended
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
		over, err := s.takeDue(ctx, s.leases())
		for _, lease := range over {
			started(lease.task)
		}
		return err
	}), nil
}

func (s *floorSide) Interval() time.Duration { return defaultLease / 3 }
