package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

const (
	// tryFor bounds one try: after it the call is repeated on another connection.
	tryFor = time.Second
	// askFor bounds a call whose outcome is unknown. Records live 60 s after their
	// end, so a repeat still meets what the first try did.
	askFor = 30 * time.Second
	// waitFor bounds a call that certainly had no effect: Redis is not there.
	waitFor = 5 * time.Second
)

// call runs a script on a partition until its outcome is known. Every script
// answers a repeat as it answered the first time, so a lost answer is asked for
// again; go-redis itself never repeats it (lua.Run).
//
// A refusal that Redis raises before the script runs (full, loading, no master)
// tells nothing of an earlier try whose answer was lost.
func (q *Queue) call(ctx context.Context, partition int, script string, args ...any) (any, error) {
	start, lost := time.Now(), false
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		try, cancel := context.WithTimeout(ctx, tryFor)
		reply, err := q.library.Run(try, q.rdb, script, q.Root(partition), args...)
		cancel()
		if err == nil {
			return reply, nil
		}
		passing, sent := classify(err)
		if !passing {
			if lost && errors.Is(plain(err), ErrFull) {
				passing = true
			} else {
				return nil, plain(err)
			}
		}
		lost = lost || sent
		limit := waitFor
		if lost {
			limit = askFor
		}
		if ctx.Err() != nil || time.Since(start) > limit {
			return nil, unanswered(ctx, lost, err)
		}
		select {
		case <-ctx.Done():
			return nil, unanswered(ctx, lost, err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// unanswered is the error of a call that was given up.
func unanswered(ctx context.Context, lost bool, last error) error {
	err := ErrUnavailable
	if lost {
		err = ErrUnknown
	}
	if ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return errors.Join(err, last)
}

// classify says of a failed try whether another may fare better, and whether
// this one may have had an effect.
func classify(err error) (passing, sent bool) {
	if lua.Raised(err) {
		for _, word := range []string{"LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "MOVED", "ASK"} {
			if redis.HasErrorPrefix(err, word) {
				return true, false
			}
		}
		// Many clients at once; it passes as they go.
		return strings.Contains(err.Error(), "max number of clients"), false
	}
	if errors.Is(err, redis.ErrClosed) {
		return false, false
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, redis.ErrPoolTimeout) {
		return true, false
	}
	return true, true
}

// plain turns what Redis raised into an error that a caller can act on.
func plain(err error) error {
	switch {
	case redis.HasErrorPrefix(err, "OOM"):
		return errors.Join(ErrFull, err)
	case redis.HasErrorPrefix(err, "WRONGTYPE") || strings.Contains(err.Error(), "WRONGTYPE"):
		return errors.Join(ErrWrongType, err)
	}
	return err
}
