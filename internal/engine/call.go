package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	// TryFor is how long a connection may be silent in the first try. Then the call is repeated on
	// another connection. Each repeat gets twice as long, so that a slow server is not overloaded
	// with repeats.
	TryFor = time.Second
	// askFor is how long a call with an unknown outcome is repeated, and a read while its tries get no
	// reply. Records are kept for 60 s after the end, so a repeat still finds the effect of the first try.
	askFor = 30 * time.Second
	// waitFor is how long a call that had no effect for certain is repeated, because Redis cannot be reached.
	waitFor = 5 * time.Second
	// aMoment is how long a try whose context has ended may take to say whether it was sent.
	aMoment = 20 * time.Millisecond
)

// tryFor is TryFor, unless SetTryFor has changed it.
var tryFor = TryFor

// SetTryFor sets how long the first try of a call of each new engine may take, in place of TryFor. It is for test binaries: the
// repeat of a call does not report what its first try did, and a busy machine can stand still for longer than TryFor.
func SetTryFor(d time.Duration) { tryFor = d }

// Call runs a script on a partition, and repeats it until its outcome is known. This is safe, since every
// script replies to a repeat as it did to the first try. go-redis itself never repeats a script
// (lua.Run). Call does not repeat a script after an error that waiting cannot cure.
//
// If Redis raises an error before the script runs (full memory, loading, no master), the outcome of an
// earlier try whose reply was lost is still unknown. The outcome of a read is never unknown, since a
// read has no effect.
//
// What the reply reports of other tasks is logged, and given to the listeners of [Engine.OnReport].
func (e *Engine) Call(ctx context.Context, partition int, script string, args ...any) (any, error) {
	reply, _, err := e.CallReported(ctx, partition, script, args...)
	return reply, err
}

// CallReported is Call, and also returns what the call has reported.
func (e *Engine) CallReported(ctx context.Context, partition int, script string, args ...any) (any, Report, error) {
	reply, err := e.observed(ctx, partition, script, args)
	if err != nil {
		return nil, Report{}, err
	}
	reply, report, err := ReadReport(partition, reply)
	if err != nil {
		return nil, Report{}, err
	}
	if !report.empty() {
		e.report(ctx, report)
	}
	return reply, report, nil
}

// observed makes a call, and tells the observers how long it took.
func (e *Engine) observed(ctx context.Context, partition int, script string, args []any) (any, error) {
	observers := e.observers.Load()
	if observers == nil {
		return e.call(ctx, partition, script, args)
	}
	start := time.Now()
	reply, err := e.call(ctx, partition, script, args)
	called(ctx, *observers, script, start, err)
	return reply, err
}

func (e *Engine) call(ctx context.Context, partition int, script string, args []any) (any, error) {
	if err := e.CheckPartition(partition); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := calling{engine: e, start: time.Now(), reads: e.library.Reads(script)}
	patience := e.tryFor
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
	engine *Engine
	start  time.Time
	reads  bool // it has no effect
	lost   bool // a try got no reply, and may have had an effect
}

// failed records the error of a try, and reports whether to try again. If not, it returns the error of the call.
func (c *calling) failed(ctx context.Context, partition int, err error) (again bool, _ error) {
	t := c.engine.diagnose(err)
	switch {
	case t.passes || c.lost && refused(err) && !refusal.Permanent(t.kind):
	case c.lost:
		return false, unknown(t.explain(err))
	default:
		return false, c.engine.Explain(partition, err)
	}
	c.lost = c.lost || t.sent && !c.reads
	limit := waitFor
	if c.lost || t.sent {
		limit = askFor
	}
	if ctx.Err() != nil || time.Since(c.start) > limit {
		return false, c.unanswered(ctx, err)
	}
	return true, err
}

// unanswered returns the error of a call that is given up, because its context ended or its time is over.
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

// ended returns the error of a call whose context ended before the next try.
func (c *calling) ended(ctx context.Context) error {
	if c.lost {
		return unknown(context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// unknown returns an error which says that a call may have had its effect.
func unknown(why error) error { return fmt.Errorf("%w (%w)", refusal.ErrUnknown, why) }

// try runs a script once. patience becomes the deadline of its context. The connection uses that as the
// longest time without any byte, so try waits for a reply that is arriving. A try that is given up has
// closed its connection before the next one begins.
//
// If the caller's deadline passes or the partition gets a new master, try returns at once. The read
// goes on in the background until its own timeout, since go-redis uses only the deadline of a context.
// If the caller cancels while a script that writes is running, try waits for the reply: a worker that stops
// must know which tasks it was given.
func (e *Engine) try(ctx context.Context, patience time.Duration, script, root string, args []any) (any, error) {
	if _, hard := ctx.Deadline(); e.bounded && !hard && (ctx.Done() == nil || !e.library.Reads(script)) {
		return e.run(ctx, patience, script, root, args)
	}
	type answer struct {
		reply any
		err   error
	}
	answered := make(chan answer, 1)
	args = copied(args)
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
	case <-over:
		return nil, context.DeadlineExceeded
	}
	// A try that waits for a connection returns now, and has sent nothing for certain.
	soon := time.NewTimer(aMoment)
	defer soon.Stop()
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-soon.C:
		return nil, ctx.Err()
	}
}

// copied returns arguments that share no memory with those of the caller, who reuses it when the call has
// returned. The client may still be writing them then.
func copied(args []any) []any {
	size := 0
	for _, arg := range args {
		if text, ok := arg.([]byte); ok {
			size += len(text)
		}
	}
	if size == 0 {
		return args
	}
	args, memory := slices.Clone(args), make([]byte, 0, size)
	for i, arg := range args {
		if text, ok := arg.([]byte); ok {
			at := len(memory)
			memory = append(memory, text...)
			args[i] = memory[at:]
		}
	}
	return args
}

func (e *Engine) run(ctx context.Context, patience time.Duration, script, root string, args []any) (any, error) {
	try, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := e.library.Run(try, e.rdb, script, root, args...)
	if _, single := e.rdb.(*redis.Client); single && errors.Is(err, context.Canceled) {
		err = &notSentError{err}
	}
	return reply, err
}

// notSentError is the error of a try whose context was cancelled while it waited for a connection. The client of one server notices that
// only there: a command that was sent ends with its reply, or with an error of the connection.
type notSentError struct{ error }

// Unwrap returns the error of the context.
func (e *notSentError) Unwrap() error { return e.error }

// timedOut reports whether a try ended because its connection was silent for too long.
func timedOut(err error) bool {
	var read net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &read) && read.Timeout()
}

// honoursContexts returns bounded if the deadline of a context ends every read of the client, so that try
// can wait for the read. It is false for a cluster, where a try must also end when the master changes.
// endless means that a read may have no timeout.
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

// EndOf returns the cause of a context that has ended, and nil for others. A context also counts as ended
// if its deadline has passed and Err is still nil, as right after a read with the same deadline.
func EndOf(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// refused reports whether Redis raised an error before the script ran: full memory, a missing right, a
// failed save. Such an error does not tell whether an earlier try had an effect.
func refused(err error) bool {
	var raised *lua.ScriptError
	return lua.Raised(err) && !errors.As(err, &raised)
}

// Located returns the errors after which a script continued, each with its file and line in our Lua.
func (e *Engine) Located(script string, words []any) []string {
	var errs []string
	for _, word := range words {
		errs = append(errs, e.library.Locate(script, Text(word)))
	}
	return errs
}
