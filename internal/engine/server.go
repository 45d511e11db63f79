package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// inspect looks at the server before anything is written: one that cannot work
// is refused, one that may lose tasks is warned of, or refused if Config.Strict.
func (e *Engine) inspect(ctx context.Context) error {
	if err := e.reach(ctx); err != nil {
		return err
	}
	if e.cluster == nil {
		return e.judge(readServer(ctx, e.rdb))
	}
	var mu sync.Mutex
	var all []map[string]string
	// A master that is away is no reason to refuse the others, nor is a map that is not read.
	e.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		ctx, cancel := context.WithTimeout(ctx, waitFor)
		defer cancel()
		facts := readServer(ctx, node)
		// The map may be a moment old, and a write finds the master by itself.
		delete(facts, "role")
		mu.Lock()
		defer mu.Unlock()
		all = append(all, facts)
		return nil
	})
	for _, facts := range all {
		if err := e.judge(facts); err != nil {
			return err
		}
	}
	if settings, err := e.cluster.ConfigGet(ctx, "cluster-require-full-coverage").Result(); err == nil && settings["cluster-require-full-coverage"] == "yes" {
		e.logger.Warn("One dead master of this cluster stops all partitions until its replica has taken over: CONFIG SET cluster-require-full-coverage no on each node")
	}
	return nil
}

// readServer is what a server tells of itself.
func readServer(ctx context.Context, node redis.Cmdable) map[string]string {
	facts := map[string]string{}
	for _, section := range []string{"server", "replication", "memory", "persistence"} {
		// The embedded server, and some managed ones, know not all sections: what is
		// not told is not judged.
		info, err := node.Info(ctx, section).Result()
		if err == nil {
			ReadInfo(facts, info)
		}
	}
	return facts
}

// judge refuses a server that cannot work, and warns of one that may lose tasks.
func (e *Engine) judge(facts map[string]string) error {
	if err := unfit(facts); err != nil {
		return err
	}
	for _, worry := range worrying(facts) {
		if e.strict {
			return fmt.Errorf("%w: %s", refusal.ErrUnfit, worry)
		}
		e.warn(worry)
	}
	return nil
}

// warned are the worries that the default logger was told of.
var warned sync.Map

// warn tells of a worry: a logger of one's own at each Open, the one that a program
// has by default once, since a program may open many namespaces.
func (e *Engine) warn(worry string) {
	if e.logger == slog.Default() {
		if _, told := warned.LoadOrStore(worry, true); told {
			return
		}
	}
	e.logger.Warn("Redis may lose tasks", "why", worry)
}

// reach waits until the server answers, no longer than ctx and waitFor. What cannot come right by
// waiting is told at once.
func (e *Engine) reach(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	var last error
	for within.Err() == nil {
		answered := make(chan error, 1)
		go func() { answered <- e.rdb.Ping(within).Err() }()
		select {
		case err := <-answered:
			if err == nil || Denied(err) || lua.MayNotRun(err) {
				return EndOf(ctx)
			}
			if t := e.diagnose(err); !t.passes {
				return t.explain(err)
			} else if last == nil && t.sent {
				if err := e.otherProtocol(ctx, err); err != nil {
					return err
				}
			}
			if !timedOut(err) || last == nil {
				last = err
			}
			e.Remap()
		case <-within.Done():
		}
		select {
		case <-within.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := EndOf(ctx); err != nil {
		return err
	}
	if last == nil || timedOut(last) {
		last = fmt.Errorf("no answer in %v", waitFor)
		if err := e.otherProtocol(ctx, last); err != nil {
			return err
		}
	}
	return e.diagnose(last).explain(last)
}

// ReadInfo adds the names and values of an INFO.
func ReadInfo(facts map[string]string, info string) {
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
}

// unfit says why a server cannot work.
func unfit(facts map[string]string) error {
	if version := facts["redis_version"]; version != "" {
		major, err := strconv.Atoi(version[:max(strings.IndexByte(version, '.'), 0)])
		if err == nil && major < 7 && major > 0 {
			return fmt.Errorf("%w: it is version %s, and 7.0 is the oldest that works: upgrade it", refusal.ErrUnfit, version)
		}
	}
	if facts["role"] == "slave" {
		return fmt.Errorf("%w: it is a replica: connect to its master %s:%s", refusal.ErrUnfit, facts["master_host"], facts["master_port"])
	}
	return nil
}

// worrying says how a server may lose tasks.
func worrying(facts map[string]string) (worries []string) {
	if policy := facts["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		worries = append(worries, fmt.Sprintf("maxmemory-policy is %s, so it may evict deadlines and whole queues: CONFIG SET maxmemory-policy noeviction", policy))
	}
	if facts["aof_enabled"] == "0" {
		worries = append(worries, "appendonly is no, so a restart takes what came since the last snapshot: CONFIG SET appendonly yes, and in its configuration file")
	}
	return worries
}
