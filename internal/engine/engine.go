// Package engine makes the calls of a namespace on a Redis: it repeats a call until its outcome is
// known, finds the master of a partition again after a failover, names keys, and reads replies.
package engine

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// Config configures an Engine. Namespace and Logger must be set.
type Config struct {
	Namespace  string
	Partitions int  // number of partitions; 0 until it is known
	Strict     bool // refuse a server that may lose tasks
	Logger     *slog.Logger
	Library    *lua.Library // defaults to the one of package lua
}

// Engine makes the calls of one namespace. It is safe for concurrent use.
type Engine struct {
	namespace  string
	partitions int
	strict     bool
	logger     *slog.Logger
	library    *lua.Library

	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // rdb, if it is one
	bounded bool                 // the deadline of a context ends a read of rdb
	endless bool                 // a read of rdb may have no timeout
	places  places               // for calls under way
	dials   *dials               // of rdb; nil if they are not known
	tryFor  time.Duration        // how long the first try of a call may take

	observers atomic.Pointer[[]Observer] // nil until Observe is called
	listeners listeners                  // of reports
	wakeLines wakeLines
}

// New checks the server and composes the scripts. It changes no data. It returns an error of package refusal
// if the server cannot be reached or Curfew cannot work with it.
func New(ctx context.Context, rdb redis.UniversalClient, c Config) (*Engine, error) {
	e := &Engine{namespace: c.Namespace, partitions: c.Partitions, strict: c.Strict, logger: c.Logger, library: c.Library, rdb: rdb, tryFor: tryFor}
	e.cluster, _ = rdb.(*redis.ClusterClient)
	e.bounded, e.endless = honoursContexts(rdb)
	e.places.most = mostCalls(rdb)
	e.dials = prepare(rdb)
	if err := e.inspect(ctx); err != nil {
		return nil, err
	}
	if e.library == nil {
		functions, err := e.knowsFunctions(ctx)
		if err == nil {
			e.library, err = lua.Load(lua.Options{Functions: functions})
		}
		if err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Partitions returns the namespace's number of partitions.
func (e *Engine) Partitions() int { return e.partitions }

// SetPartitions sets the number of partitions. It must be called before other goroutines use the engine.
func (e *Engine) SetPartitions(n int) { e.partitions = n }

// SetTryFor sets how long the first try of a call may take, for a test of calls that are repeated. It must be called before other
// goroutines use the engine.
func (e *Engine) SetTryFor(d time.Duration) { e.tryFor = d }

// Client returns the connection to Redis.
func (e *Engine) Client() redis.UniversalClient { return e.rdb }

// Logger returns the logger of the namespace.
func (e *Engine) Logger() *slog.Logger { return e.logger }

// Namespace returns the name of the namespace.
func (e *Engine) Namespace() string { return e.namespace }

// Library returns the Lua that the engine runs.
func (e *Engine) Library() *lua.Library { return e.library }

// CheckPartition returns [refusal.ErrInvalid] for a partition that the namespace does not have.
func (e *Engine) CheckPartition(p int) error {
	if p < 0 || p >= max(e.partitions, 1) {
		return refusal.Invalid("partition", "%d must be one of the %d partitions of this namespace, counted from 0", p, e.partitions)
	}
	return nil
}

// knowsFunctions reports whether the server has Redis Functions. It waits until the server replies. It tests
// for flags of scripts, which came with Functions: without them, calls that end tasks would fail when
// the memory is full.
func (e *Engine) knowsFunctions(ctx context.Context) (bool, error) {
	for start := time.Now(); ; {
		err := e.rdb.Eval(ctx, "#!lua flags=no-writes\nreturn 1", []string{e.Root(0)}).Err()
		if lua.MayNotRun(err) {
			return true, nil // the user has no right to run scripts, so only Functions can work
		}
		if err == nil || !e.diagnose(err).passes {
			return err == nil, nil
		}
		e.Remap()
		if ctx.Err() != nil || time.Since(start) > waitFor {
			return false, e.Unread(ctx, 0, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// together is how many partitions have their commands in one round trip.
const together = 100

// Pipelined calls ask to add commands for each partition, and sends the commands for 100 partitions in a round trip.
// Each command has its own error, so ask must keep the commands.
func (e *Engine) Pipelined(ctx context.Context, ask func(pipe redis.Pipeliner, partition int)) {
	for start := 0; start < e.partitions; start += together {
		Pipelined(ctx, e.rdb, func(pipe redis.Pipeliner) {
			for p := start; p < min(start+together, e.partitions); p++ {
				ask(pipe, p)
			}
		})
	}
}

// Pipelined sends the commands that ask adds in a round trip. Each command has its own error, so ask must keep it. If Redis refuses
// the connection, for example because of a wrong password, go-redis leaves the commands without an error and without a reply.
// Pipelined gives them that error.
func Pipelined(ctx context.Context, rdb Pipeliner, ask func(pipe redis.Pipeliner)) {
	cmds, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { ask(pipe); return nil })
	if err == nil || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil }) {
		return
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// Pipeliner is a client that can send several commands in a round trip.
type Pipeliner interface {
	Pipelined(ctx context.Context, ask func(redis.Pipeliner) error) ([]redis.Cmder, error)
}

// Given returns [refusal.ErrInvalid] if the context is nil.
func Given(ctx context.Context) error {
	if IsNil(ctx) {
		return refusal.Invalid("context", "must not be nil: use context.Background()")
	}
	return nil
}

// IsNil reports whether v is nil or holds a nil pointer, func, map, slice or channel.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Interface, reflect.Chan:
		return r.IsNil()
	}
	return false
}
