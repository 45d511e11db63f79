package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	// TryFor is how long nothing may come or go in the first try: after it the call is
	// repeated on another connection, and given twice as long each time. A server that is
	// slow and not away must not be buried in repeats.
	TryFor = time.Second
	// askFor bounds a call whose outcome is unknown. Records live 60 s after their
	// end, so a repeat still meets what the first try did.
	askFor = 30 * time.Second
	// waitFor bounds a call that certainly had no effect: Redis is not there.
	waitFor = 5 * time.Second
)

// Call runs a script on a partition until its outcome is known. Every script
// answers a repeat as it answered the first time, so a lost answer is asked for
// again; go-redis itself never repeats it (lua.Run). What cannot come right by waiting is
// not repeated.
//
// A refusal that Redis raises before the script runs (full, loading, no master)
// tells nothing of an earlier try whose answer was lost. A read has no effect, so its
// outcome is never unknown.
func (e *Engine) Call(ctx context.Context, partition int, script string, args ...any) (any, error) {
	if err := e.CheckPartition(partition); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := calling{engine: e, start: time.Now(), reads: e.library.Reads(script)}
	patience := TryFor
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, e.longestPause()) {
		place := e.enter(ctx, partition)
		if place == nil {
			return nil, c.ended(ctx)
		}
		try, leave := e.watchMaster(ctx, partition)
		reply, err := e.try(try, patience, script, e.Root(partition), args)
		leave()
		<-place
		if err == nil {
			return reply, nil
		}
		if timedOut(err) {
			patience *= 2
		}
		again, err := c.failed(ctx, partition, err)
		if !again {
			return nil, err
		}
		e.Remap()
		select {
		case <-ctx.Done():
			return nil, c.unanswered(ctx, err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// calling has the results of the tries of one call.
type calling struct {
	engine       *Engine
	start        time.Time
	reads        bool // it has no effect
	silent, lost bool // a try got no answer; and may have had an effect
}

// failed takes the error of a try, and tells whether to try again; if not, it returns the call's error.
func (c *calling) failed(ctx context.Context, partition int, err error) (again bool, _ error) {
	t := c.engine.diagnose(err)
	switch {
	case t.passes || c.lost && refused(err) && !refusal.Permanent(t.kind):
	case c.lost:
		return false, unknown(t.explain(err))
	default:
		return false, c.engine.Explain(partition, err)
	}
	c.silent = c.silent || t.sent
	c.lost = c.lost || t.sent && !c.reads
	limit := waitFor
	if c.silent {
		limit = askFor
	}
	if ctx.Err() != nil || time.Since(c.start) > limit {
		return false, c.unanswered(ctx, err)
	}
	return true, err
}

// unanswered is the error of a call that was given up: because its context ended, or
// because it was repeated long enough.
func (c *calling) unanswered(ctx context.Context, last error) error {
	t := c.engine.diagnose(last)
	switch {
	case c.lost && ctx.Err() != nil:
		return unknown(context.Cause(ctx))
	case c.lost:
		return unknown(t.explain(last))
	case ctx.Err() == nil:
		return t.explain(last)
	case errors.Is(last, ctx.Err()) || timedOut(last):
		return context.Cause(ctx)
	}
	return &told{nil, fmt.Sprintf("%v, while %v", context.Cause(ctx), t.explain(last)), context.Cause(ctx)}
}

// ended is the error of a call whose context ended before its next try.
func (c *calling) ended(ctx context.Context) error {
	if c.lost {
		return unknown(context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// unknown says that a call may have had its effect.
func unknown(why error) error { return fmt.Errorf("%w (%w)", refusal.ErrUnknown, why) }

// try runs a script once. Its patience is the deadline of its context, which the
// connection takes for how long nothing may pass. So a try whose reply is arriving is
// waited for, and one that was given up has closed its connection before the next begins.
//
// A caller's deadline, and a new master, end the wait at once, but not the read: go-redis
// asks a context for its deadline only. The read is left behind, and ends by its own
// time-out. A caller who cancels gets the answer of a call that writes if it is under way:
// who stops must know what was handed out.
func (e *Engine) try(ctx context.Context, patience time.Duration, script, root string, args []any) (any, error) {
	if _, hard := ctx.Deadline(); e.bounded && !hard && (ctx.Done() == nil || !e.library.Reads(script)) {
		return e.run(ctx, patience, script, root, args)
	}
	type answer struct {
		reply any
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		reply, err := e.run(ctx, patience, script, root, args)
		answered <- answer{reply, err}
	}()
	var over <-chan time.Time
	if e.endless {
		over = time.After(patience)
	}
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-over:
		return nil, context.DeadlineExceeded
	}
}

func (e *Engine) run(ctx context.Context, patience time.Duration, script, root string, args []any) (any, error) {
	try, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e.library.Run(try, e.rdb, script, root, args...)
}

// TimedOut tells whether a client gave up on an answer.
func TimedOut(err error) bool { return timedOut(err) }

// timedOut tells whether a try ended because nothing passed for as long as it was given.
func timedOut(err error) bool {
	var read net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &read) && read.Timeout()
}

// honoursContexts tells whether a context's deadline ends a read of this client, and
// nothing else has to; a cluster's tries must also end when the master changes. endless
// means that nothing is known to end a read.
func honoursContexts(rdb redis.UniversalClient) (bounded, endless bool) {
	switch c := rdb.(type) {
	case *redis.Client:
		o := c.Options()
		return o.ContextTimeoutEnabled, !o.ContextTimeoutEnabled && o.ReadTimeout <= 0
	case *redis.ClusterClient:
		o := c.Options()
		return false, !o.ContextTimeoutEnabled && o.ReadTimeout <= 0
	}
	return false, true
}

// EndOf is why a context is over, nil while it is not. A read whose time-out is the
// context's deadline gives up a moment before the context itself says so.
func EndOf(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// refused tells whether Redis raised an error before the script ran: full memory, a
// missing right, a failed save. It says nothing of an earlier try.
func refused(err error) bool {
	var raised *lua.ScriptError
	return lua.Raised(err) && !errors.As(err, &raised)
}

// Located tells what a script met and went on, with the places in our Lua.
func (e *Engine) Located(script string, words []any) []string {
	var errs []string
	for _, word := range words {
		errs = append(errs, e.library.Locate(script, Text(word)))
	}
	return errs
}
