// Package engine makes the calls of a namespace on a Redis: it repeats a call until its outcome is
// known, finds the master of a partition again after a failover, names keys, and reads replies.
package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// Config says which namespace, and how. All but Library must be given.
type Config struct {
	Namespace  string
	Partitions int  // 0 until they are known
	Strict     bool // refuse a server that may lose tasks
	Logger     *slog.Logger
	Library    *lua.Library // nil: that of package lua
}

// Engine is the connection of one namespace. It is safe for concurrent use.
type Engine struct {
	namespace  string
	partitions int
	strict     bool
	logger     *slog.Logger
	library    *lua.Library

	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // rdb, if it is one
	bounded bool                 // a context's deadline ends a read of rdb
	endless bool                 // nothing ends a read of rdb
	places  places               // of calls that may be under way
}

// New looks at the server and loads the calls. It changes nothing.
func New(ctx context.Context, rdb redis.UniversalClient, c Config) (*Engine, error) {
	e := &Engine{namespace: c.Namespace, partitions: c.Partitions, strict: c.Strict, logger: c.Logger, library: c.Library, rdb: rdb}
	e.cluster, _ = rdb.(*redis.ClusterClient)
	e.bounded, e.endless = honoursContexts(rdb)
	e.places.most = mostCalls(rdb)
	bePatient(rdb)
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

// Partitions is how many the namespace has.
func (e *Engine) Partitions() int { return e.partitions }

// SetPartitions notes how many there are, before anybody else uses the engine.
func (e *Engine) SetPartitions(n int) { e.partitions = n }

// Client is the connection to Redis.
func (e *Engine) Client() redis.UniversalClient { return e.rdb }

// Logger is where all that is built on the engine logs.
func (e *Engine) Logger() *slog.Logger { return e.logger }

// Namespace is its name.
func (e *Engine) Namespace() string { return e.namespace }

// Library is the Lua that it runs.
func (e *Engine) Library() *lua.Library { return e.library }

// CheckPartition refuses a partition that the namespace does not have.
func (e *Engine) CheckPartition(p int) error {
	if p < 0 || p >= max(e.partitions, 1) {
		return refusal.Invalid("partition", "%d must be one of the %d that this namespace has, from 0 on", p, e.partitions)
	}
	return nil
}

// knowsFunctions asks the server, until it answers, whether it knows Functions. A server
// that does also knows the flags of scripts, without which a full Redis would not drain.
func (e *Engine) knowsFunctions(ctx context.Context) (bool, error) {
	for start := time.Now(); ; {
		err := e.rdb.Eval(ctx, "#!lua flags=no-writes\nreturn 1", []string{e.Root(0)}).Err()
		if lua.MayNotRun(err) {
			return true, nil // the user has no right to scripts; that leaves functions
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
