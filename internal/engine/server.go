package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// inspect checks the server before anything is written. It returns an error if Curfew cannot work with the
// server. It logs a warning if the server may lose tasks, or returns an error if Config.Strict is set.
func (e *Engine) inspect(ctx context.Context) error {
	if err := e.reach(ctx); err != nil {
		return err
	}
	if e.cluster == nil {
		return e.judge(readServer(ctx, e.rdb))
	}
	var mu sync.Mutex
	var servers []map[string]string
	// Errors are ignored: a master that is down, or a missing map, is no reason to refuse the others.
	e.cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		ctx, cancel := context.WithTimeout(ctx, waitFor)
		defer cancel()
		facts := readServer(ctx, node)
		// The map may be outdated, so a node may be a replica by now. Writes find the master anyway.
		delete(facts, "role")
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, facts)
		return nil
	})
	for _, facts := range servers {
		if err := e.judge(facts); err != nil {
			return err
		}
	}
	if settings, err := e.cluster.ConfigGet(ctx, "cluster-require-full-coverage").Result(); err == nil && settings["cluster-require-full-coverage"] == "yes" {
		e.logger.Warn("If one master of this cluster fails, all partitions stop until its replica has taken over: run CONFIG SET cluster-require-full-coverage no on each node")
	}
	return nil
}

// readServer returns the INFO of a server.
func readServer(ctx context.Context, node redis.Cmdable) map[string]string {
	facts := map[string]string{}
	for _, section := range []string{"server", "replication", "memory", "persistence"} {
		// The embedded server and some managed ones do not have all sections. Missing values
		// are not judged.
		info, err := node.Info(ctx, section).Result()
		if err == nil {
			ReadInfo(facts, info)
		}
	}
	return facts
}

// judge returns an error for a server that Curfew cannot work with, and warns of one that may lose tasks.
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

// warning is a warning that a logger has got.
type warning struct {
	logger weak.Pointer[slog.Logger]
	worry  string
}

// warned has the warnings that were written.
var warned sync.Map

// warn logs a warning. A logger gets it once, since a program may open many namespaces, or one several times.
func (e *Engine) warn(worry string) {
	if _, repeated := warned.LoadOrStore(warning{weak.Make(e.logger), worry}, true); !repeated {
		e.logger.Warn("Redis may lose tasks", "namespace", e.namespace, "why", worry)
	}
}

// reach waits until the server replies, for up to waitFor or until ctx ends. It returns at once an error that
// waiting cannot cure.
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
	if cause := EndOf(ctx); cause != nil {
		return e.inVain(cause, last)
	}
	if last == nil || timedOut(last) {
		last = fmt.Errorf("no answer in %v", waitFor)
		// go-redis tries several times before it returns the error, which can take longer than waitFor on a busy machine.
		if err := e.askOnce(ctx); err != nil {
			last = err
		} else if err := e.otherProtocol(ctx, last); err != nil {
			return err
		}
	}
	return e.diagnose(last).explain(last)
}

// askOnce asks the server once, with a client that repeats nothing. It returns nil if the server answers, or if it is silent for
// lookFor. It returns nil for a client of a cluster, which has several addresses.
func (e *Engine) askOnce(ctx context.Context) error {
	rdb, single := e.rdb.(*redis.Client)
	if !single {
		return nil
	}
	options := *rdb.Options()
	options.MaxRetries, options.DialerRetries, options.DialTimeout = -1, 1, lookFor
	options.PushNotificationProcessor, options.MaintNotificationsConfig = nil, &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	once := redis.NewClient(&options)
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	answered := make(chan error, 1)
	go func() { // a dial with TLS ignores the context
		defer once.Close()
		answered <- once.Ping(ctx).Err()
	}()
	select {
	case err := <-answered:
		if !timedOut(err) {
			return err
		}
	case <-ctx.Done():
	}
	return nil
}

// ReadInfo parses the output of INFO into facts, by name.
func ReadInfo(facts map[string]string, info string) {
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
}

// Embedded reports whether the server is package embedded, according to its INFO.
func Embedded(facts map[string]string) bool { return facts["curfew_embedded"] != "" }

// unfit returns an error if Curfew cannot work with the server.
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

// worrying returns the reasons why a server may lose tasks.
func worrying(facts map[string]string) (worries []string) {
	if policy := facts["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		worries = append(worries, fmt.Sprintf("maxmemory-policy is %s, so it may evict deadlines and whole queues: run CONFIG SET maxmemory-policy noeviction", policy))
	}
	if facts["aof_enabled"] == "0" {
		worries = append(worries, "appendonly is no, so a restart loses all changes since the last snapshot: run CONFIG SET appendonly yes, and set it in the configuration file")
	}
	return worries
}
