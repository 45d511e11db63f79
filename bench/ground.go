package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

var (
	// ErrUnreachable is the error of a comparison whose server does not answer.
	ErrUnreachable = errors.New("the Redis server does not answer")
	// ErrOccupied is the error of a comparison whose given server has keys of a System
	// already. Choose another namespace, database or server.
	ErrOccupied = errors.New("the Redis server is in use")
)

// ground is the server of a comparison.
type ground struct {
	rdb      redis.UniversalClient
	place    Place
	given    bool
	prefixes []string // of all Systems' keys
}

// prepare connects to the server. A given server must have no key of a System.
func prepare(ctx context.Context, c CompareConfig, systems []System) (*ground, error) {
	c.Place.Namespace = cmp.Or(c.Place.Namespace, "bench")
	rdb, err := c.Place.connect()
	if err != nil {
		return nil, err
	}
	g := &ground{rdb: rdb, place: c.Place, given: c.Given}
	for _, s := range systems {
		g.prefixes = append(g.prefixes, s.Prefixes(c.Place.Namespace)...)
	}
	if err = g.ping(ctx); err == nil && g.given {
		err = g.refuseOccupied(ctx, systems)
	}
	if err != nil {
		rdb.Close()
		return nil, err
	}
	return g, nil
}

// connect returns a new client for one server. The errors of queue.Connect explain an invalid URL and never contain
// its password.
func (p Place) connect() (redis.UniversalClient, error) {
	scheme, _, _ := strings.Cut(p.URL, ":")
	if strings.Contains(scheme, "+") {
		return nil, fmt.Errorf("%w: a comparison needs one server, redis://host:port/0, and not a cluster or sentinels", refusal.ErrInvalid)
	}
	return queue.Connect(p.URL)
}

// options returns the options of the URL, for libraries that make their own client.
func (p Place) options() (*redis.Options, error) {
	options, err := redis.ParseURL(p.URL)
	if err != nil {
		return nil, refusal.ErrInvalid // the text of the error has the URL, and thus the password
	}
	return options, nil
}

// ping returns ErrUnreachable unless the server answers. Its client does not retry.
func (g *ground) ping(ctx context.Context) error {
	options, err := g.place.options()
	if err != nil {
		return err
	}
	options.MaxRetries, options.DialerRetries, options.ContextTimeoutEnabled = -1, 1, true
	rdb := redis.NewClient(options)
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// explain adds ErrUnreachable to an error if the server does not answer any more.
func (g *ground) explain(err error) error {
	if err == nil {
		return nil
	}
	if e := g.ping(context.Background()); e != nil {
		return fmt.Errorf("%w, so the measurement failed: %w", e, err)
	}
	return err
}

// refuseOccupied returns ErrOccupied if the server has keys of a System: they can be in use.
func (g *ground) refuseOccupied(ctx context.Context, systems []System) error {
	for _, s := range systems {
		for _, prefix := range s.Prefixes(g.place.Namespace) {
			key, err := g.first(ctx, prefix)
			if err != nil {
				return err
			}
			if key != "" {
				return fmt.Errorf("%w: it has keys of %s, for example %q", ErrOccupied, s.Name(), key)
			}
		}
	}
	return nil
}

// first returns a key that begins with a prefix, or "" if no key does.
func (g *ground) first(ctx context.Context, prefix string) (string, error) {
	keys := g.rdb.Scan(ctx, 0, engine.KeysFrom(prefix), 1000).Iterator()
	if keys.Next(ctx) {
		return keys.Val(), nil
	}
	return "", keys.Err()
}

// clear removes the keys of the previous turn. It flushes the server unless it was given.
func (g *ground) clear(ctx context.Context) error {
	if !g.given {
		return g.rdb.FlushAll(ctx).Err()
	}
	for _, prefix := range g.prefixes {
		if err := g.remove(ctx, prefix); err != nil {
			return err
		}
	}
	return nil
}

// remove unlinks the keys that begin with a prefix.
func (g *ground) remove(ctx context.Context, prefix string) error {
	for cursor := uint64(0); ; {
		keys, next, err := g.rdb.Scan(ctx, cursor, engine.KeysFrom(prefix), 1000).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := g.rdb.Unlink(ctx, keys...).Err(); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// close removes the keys of the last turn, even if the comparison was interrupted.
func (g *ground) close() {
	if g.given {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		g.clear(ctx)
	}
	g.rdb.Close()
}

// server returns the version of the server, and whether it has an append-only file.
func (g *ground) server(ctx context.Context) (version string, aof bool, err error) {
	info, err := g.rdb.Info(ctx, "server", "persistence").Result()
	fields := infoFields(info)
	return fields["redis_version"], fields["aof_enabled"] == "1", err
}
