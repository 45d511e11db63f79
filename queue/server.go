package queue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// inspect looks at the server before anything is written: one that cannot work
// is refused, one that may lose tasks is warned of, or refused if Config.Strict.
func (q *Queue) inspect(ctx context.Context) error {
	if err := q.reach(ctx); err != nil {
		return err
	}
	_, cluster := q.rdb.(*redis.ClusterClient)
	facts := map[string]string{}
	for _, section := range []string{"server", "replication", "memory"} {
		// The embedded server, and some managed ones, know not all sections: what is
		// not told is not judged.
		info, err := q.rdb.Info(ctx, section).Result()
		if err == nil {
			readInfo(facts, info)
		}
	}
	if cluster {
		delete(facts, "role") // the section came from whichever node was asked
	}
	if err := unfit(facts); err != nil {
		return err
	}
	if worry := worrying(facts); worry != "" {
		if q.config.Strict {
			return fmt.Errorf("%w: %s", ErrUnfit, worry)
		}
		q.config.Logger.Warn("Redis may lose tasks", "why", worry)
	}
	return nil
}

// reach waits for an answer, no longer than ctx and waitFor.
func (q *Queue) reach(ctx context.Context) error {
	answered := make(chan error, 1)
	go func() { answered <- q.rdb.Ping(ctx).Err() }()
	select {
	case err := <-answered:
		if ctx.Err() == nil && err != nil {
			return fmt.Errorf("%w (%w)", ErrUnavailable, err)
		}
	case <-time.After(waitFor):
		return fmt.Errorf("%w (no answer in %v)", ErrUnavailable, waitFor)
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func readInfo(facts map[string]string, info string) {
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
			return fmt.Errorf("%w: it is version %s, and 7.0 is the oldest that works: upgrade it", ErrUnfit, version)
		}
	}
	if facts["role"] == "slave" {
		return fmt.Errorf("%w: it is a replica: connect to its master %s:%s", ErrUnfit, facts["master_host"], facts["master_port"])
	}
	return nil
}

// worrying says how a server may lose tasks, "" if it will not.
func worrying(facts map[string]string) string {
	if policy := facts["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		return fmt.Sprintf("maxmemory-policy is %s, so it may evict deadlines and whole queues: CONFIG SET maxmemory-policy noeviction", policy)
	}
	return ""
}
