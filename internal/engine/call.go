package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// MaxTasks is the greatest number of tasks in a call.
const MaxTasks = 500

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
	// aMoment is the time that a try gets after its context ended, to report that it was still waiting for a
	// connection. Then it has sent nothing, and the outcome of the call is certain.
	aMoment = 20 * time.Millisecond
)

// tryFor is TryFor, unless SetTryFor has changed it.
var tryFor = TryFor

// SetTryFor sets the limit for the first try of each new engine's calls, in place of TryFor. It is for test binaries:
// the repeat of a call does not report the effects of its first try, and a busy machine can stand still for longer
// than TryFor.
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

// CallReported is Call, and also returns the report of the call.
func (e *Engine) CallReported(ctx context.Context, partition int, script string, args ...any) (any, Report, error) {
	start := time.Now()
	reply, lost, err := e.call(ctx, start, partition, script, args)
	if observers := e.observers.Load(); observers != nil {
		called(ctx, *observers, partition, script, start, err)
	}
	if err != nil {
		return nil, Report{}, err
	}
	reply, report, err := ReadReport(partition, reply)
	if err != nil {
		return nil, Report{}, err
	}
	report.Lost = lost
	if len(report.TimedOut) > 0 || len(report.Woken) > 0 {
		e.report(ctx, report)
	}
	return reply, report, nil
}

// call makes the tries of a call that began at start. lost is true if a try before the last one may have had an effect.
func (e *Engine) call(ctx context.Context, start time.Time, partition int, script string, args []any) (reply any, lost bool, err error) {
	if err := e.CheckPartition(partition); err != nil {
		return nil, false, err
	}
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	c := calling{engine: e, start: start, reads: e.library.Reads(script)}
	patience := e.tryFor
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, e.longestPause()) {
		place := e.enter(ctx, partition)
		if place == nil {
			return nil, c.lost, c.ended(ctx)
		}
		reply, err := e.try(ctx, partition, patience, script, args)
		<-place
		if err == nil {
			return reply, c.lost, nil
		}
		if timedOut(err) {
			patience *= 2
		}
		if strings.HasPrefix(innerText(err), "READONLY") {
			e.readOnly(partition)
		}
		retry, err := c.failed(ctx, partition, err)
		if !retry {
			return nil, c.lost, err
		}
		e.Remap()
		select {
		case <-ctx.Done():
			return nil, c.lost, c.unanswered(ctx, err)
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// calling is one call with the results of its tries so far.
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
		return unknown(c.engine.inVain(context.Cause(ctx), last))
	case c.lost:
		return unknown(t.explain(last))
	case ctx.Err() == nil:
		return t.explain(last)
	}
	return c.engine.inVain(context.Cause(ctx), last)
}

// ended returns the error of a call whose context ended before the next try.
func (c *calling) ended(ctx context.Context) error {
	if c.lost {
		return unknown(c.engine.InVain(ctx))
	}
	return c.engine.InVain(ctx)
}

// unknown returns an error for a call that may have had its effect, because the reply of a try was lost.
func unknown(why error) error { return fmt.Errorf("%w (%w)", refusal.ErrUnknown, why) }

// try runs a script once. patience becomes the deadline of its context. The connection uses that as the
// longest time without any byte, so try waits for a reply that is arriving. A try that is given up has
// closed its connection before the next one begins.
//
// If the caller's deadline passes or the partition gets a new master, try returns at once. The read
// goes on in the background until its own timeout, since go-redis uses only the deadline of a context.
// If the caller cancels while a script that writes is running, try waits for the reply: a worker that stops
// must know which tasks it was given.
func (e *Engine) try(ctx context.Context, partition int, patience time.Duration, script string, args []any) (any, error) {
	root := e.Root(partition)
	if _, hard := ctx.Deadline(); e.bounded && !hard && (ctx.Done() == nil || !e.library.Reads(script)) {
		return e.run(ctx, patience, script, root, args)
	}
	ctx, leave := e.watchMaster(ctx, partition)
	defer leave()
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
	var timeout <-chan time.Time
	if e.endless {
		timeout = time.After(patience)
	}
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-ctx.Done():
	case <-timeout:
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

// copied returns a copy of the arguments. The caller reuses its own memory when the call has returned, but the client
// may still be writing a try that was given up.
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
	if _, single := e.rdb.(*redis.Client); single && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) && EndOf(ctx) != nil) {
		err = &notSentError{err}
	}
	return reply, err
}

// notSentError is the error of a try whose context ended while it waited for a connection. The client of one server notices that
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
// failed save. After such an error it is still unknown whether an earlier try had an effect.
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

// Report describes the changes that a call made beside its own: tasks that it ended because their time was up, and agents
// that it woke. A change is in the report of one call alone. If the reply of that call is lost, it is in none.
type Report struct {
	TimedOut []TimedOut
	Woken    []Woken
	// Lost is true if an earlier try of the call got no reply. It may run still, later than the one whose reply this is.
	Lost bool
}

// TimedOut is a task that timed out.
type TimedOut struct {
	Partition       int
	ID, Kind, Queue string
	Type            string        // execution, queue, attempt, workflow
	Due             time.Time     // when its time was up
	Lag             time.Duration // how long after Due the end was written
}

// Woken is an agent that was put in line again, since its wait is over.
type Woken struct {
	Partition       int
	ID, Kind, Queue string
	Reason          string // how the wait ended: satisfied, impossible, timed_out
	Member          string // the id of the member that decided the wait; "" if none did
	MemberTimeout   string // the type of the timeout if that member timed out, otherwise ""
}

// Resumed reports whether a timeout of a task resumed the agent.
func (w *Woken) Resumed() bool { return w.MemberTimeout != "" }

// reportWords is the number of words in a report (lua/store/tell.lua).
const reportWords = 7

// ReadReport separates the result of a call from the report that its reply carries.
func ReadReport(partition int, reply any) (any, Report, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) == 0 || parts[0] != "told" {
		return reply, Report{}, nil
	}
	if len(parts) != 3 {
		return nil, Report{}, Unexpected("answer", reply)
	}
	lines, err := Elements(parts[1], nil)
	if err != nil {
		return nil, Report{}, err
	}
	var r Report
	for _, line := range lines {
		w := strings.Split(Text(line), " ")
		if len(w) != reportWords {
			return nil, Report{}, Unexpected("report", line)
		}
		switch id, kind, queue := w[1], w[2], w[3]; w[0] {
		case "timed_out":
			if r.TimedOut == nil {
				r.TimedOut = make([]TimedOut, 0, len(lines))
			}
			r.TimedOut = append(r.TimedOut, TimedOut{Partition: partition, ID: id, Kind: kind, Queue: queue, Type: w[4],
				Due: Instant(w[5]).UTC(), Lag: time.Duration(Number(w[6])) * time.Millisecond})
		case "woken":
			woken := Woken{Partition: partition, ID: id, Kind: kind, Queue: queue, Reason: w[4]}
			if w[5] != "-" {
				woken.Member = id + "." + w[5]
			}
			if w[6] != "-" {
				woken.MemberTimeout = w[6]
			}
			r.Woken = append(r.Woken, woken)
		}
	}
	return parts[2], r, nil
}

// loggerKey is the key of a context's logger.
type loggerKey struct{}

// LogTo returns a context whose calls log their reports to this logger. Otherwise they log to the logger of the
// namespace.
func LogTo(ctx context.Context, logger *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, logger)
}

// listeners are functions that get each report.
type listeners struct {
	mu  sync.RWMutex
	all []func(context.Context, Report)
}

// OnReport calls f with each report of a call, after it was logged. f runs in the goroutine of the caller, with the
// context of the call, so it must return soon.
func (e *Engine) OnReport(f func(ctx context.Context, r Report)) {
	e.listeners.mu.Lock()
	defer e.listeners.mu.Unlock()
	e.listeners.all = append(slices.Clip(e.listeners.all), f)
}

// report logs a report and gives it to the listeners.
func (e *Engine) report(ctx context.Context, r Report) {
	logger, ok := ctx.Value(loggerKey{}).(*slog.Logger)
	if !ok {
		logger = e.logger
	}
	r.log(ctx, logger)
	e.listeners.mu.RLock()
	listeners := e.listeners.all
	e.listeners.mu.RUnlock()
	for _, f := range listeners {
		f(ctx, r)
	}
}

// instantLayout is RFC 3339 with milliseconds, which are left out if they are zero.
const instantLayout = "2006-01-02T15:04:05.999Z07:00"

// log writes a line for each timeout, and then one for each agent that a timeout resumed.
func (r *Report) log(ctx context.Context, logger *slog.Logger) {
	if !logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for _, t := range r.TimedOut {
		attrs := []slog.Attr{slog.String("task_id", t.ID), slog.String("deadline", t.Due.Format(instantLayout)), slog.String("queue", t.Queue), slog.String("kind", t.Kind)}
		if owner := names.OwnerOf(t.ID); owner != "" {
			attrs = append(attrs, slog.String("agent_id", owner), slog.String("run_id", names.RootOf(t.ID)))
		}
		attrs = append(attrs, slog.String("timeout_type", t.Type), slog.Int64("lag_ms", t.Lag.Milliseconds()))
		logger.LogAttrs(ctx, slog.LevelInfo, "Task timed out", attrs...)
	}
	for _, w := range r.Woken {
		if w.Resumed() {
			logger.LogAttrs(ctx, slog.LevelInfo, "Resuming agent after task timeout", slog.String("agent_id", w.ID), slog.String("task_id", w.Member),
				slog.String("queue", w.Queue), slog.String("kind", w.Kind), slog.String("run_id", names.RootOf(w.ID)))
		}
	}
}
