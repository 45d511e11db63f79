package queue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

// recordVersion is the version of the records that this code writes.
const recordVersion = 2

// Config adjusts a Queue. The zero value is ready to use.
type Config struct {
	// Namespace is one deployment on a Redis. Defaults to "curfew".
	Namespace string
	// Partitions is how many cluster slots the namespace spreads over, fixed when
	// it is created. Defaults to what the namespace has, 1 if it is new.
	Partitions int
	// MaxBytes bounds a payload, a result, and the headers. Defaults to 1 MiB.
	MaxBytes int
	// Events is what a new namespace tells in its event streams: "all" transitions,
	// "terminal" ones (the default) or "none".
	Events string
	// EventMiB is about how many MiB of events a partition of a new namespace keeps, 1 to
	// 65,536. Defaults to 64.
	EventMiB int
	// Figures is whether a new namespace counts by kind how tasks ended and how long
	// they took, for [Queue.Figures]: "on" (the default) or "off".
	Figures string
	// Strict refuses a Redis whose settings may lose tasks, where otherwise a
	// warning is logged.
	Strict bool
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Library is the Lua to run. Defaults to that of package lua, in the form that
	// the server knows; tests give one with a clock of their own.
	Library *lua.Library
}

// Queue is a namespace on a Redis. It is safe for concurrent use and starts no
// goroutine by itself.
type Queue struct {
	config  Config
	rdb     redis.UniversalClient
	cluster *redis.ClusterClient // rdb, if it is one
	bounded bool                 // a context's deadline ends a read of rdb
	endless bool                 // nothing ends a read of rdb
	library *lua.Library

	ids     ids
	turn    atomic.Uint32 // spreads root tasks over the partitions
	gates   []gate        // one a partition: concurrent enqueues travel together
	watches watches
}

// Open opens a namespace and creates it if it is new. It refuses a namespace with
// another number of partitions ([ErrPartitions]) or of a newer version
// ([ErrNewer]), a Redis that cannot work ([ErrUnfit]), and a user who lacks a right that
// Curfew needs ([ErrNoRight]).
//
// Give a client with ContextTimeoutEnabled, as [Connect] does: then a call that gets
// no answer is repeated after a second, otherwise after the client's ReadTimeout. Open
// adds a hook to the client: on connections that it makes from then on, time-outs count
// from the last byte that passed, so that a large reply may take longer than they say.
func Open(ctx context.Context, rdb redis.UniversalClient, config Config) (*Queue, error) {
	if err := config.complete(); err != nil {
		return nil, failed("open", "", err)
	}
	q := &Queue{config: config, rdb: rdb, library: config.Library}
	q.cluster, _ = rdb.(*redis.ClusterClient)
	q.bounded, q.endless = honoursContexts(rdb)
	bePatient(rdb)
	if err := q.inspect(ctx); err != nil {
		return nil, failed("open", "", err)
	}
	if q.library == nil {
		functions, err := q.knowsFunctions(ctx)
		if err == nil {
			q.library, err = lua.Load(lua.Options{Functions: functions})
		}
		if err != nil {
			return nil, failed("open", "", err)
		}
	}
	if err := q.create(ctx); err != nil {
		return nil, failed("open", "", err)
	}
	q.gates = make([]gate, q.config.Partitions)
	return q, nil
}

func (c *Config) complete() error {
	if c.Namespace == "" {
		c.Namespace = "curfew"
	}
	if !validName(c.Namespace, "._-:") {
		return invalid("namespace", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : and begin with a letter or digit", clip(c.Namespace))
	}
	if c.Partitions < 0 || c.Partitions > MaxPartitions {
		return invalid("partitions", "%d must be 1 to %d, or 0 for what the namespace has", c.Partitions, MaxPartitions)
	}
	if c.MaxBytes < 0 {
		return invalid("max bytes", "%d must not be negative", c.MaxBytes)
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 20
	}
	if c.Events == "" {
		c.Events = "terminal"
	}
	if c.Events != "all" && c.Events != "terminal" && c.Events != "none" {
		return invalid("events", "%q must be all, terminal or none", clip(c.Events))
	}
	if c.EventMiB < 0 || c.EventMiB > 65536 {
		return invalid("event MiB", "%d must be 1 to 65536, or 0 for 64", c.EventMiB)
	}
	if c.Figures == "" {
		c.Figures = "on"
	}
	if c.Figures != "on" && c.Figures != "off" {
		return invalid("figures", "%q must be on or off", clip(c.Figures))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// create makes or compares the root of every partition, the first one first: it
// says how many there are.
func (q *Queue) create(ctx context.Context) error {
	for p := 0; p == 0 || p < q.config.Partitions; p++ {
		reply, err := q.call(ctx, p, "open", recordVersion, q.config.Partitions, q.config.Events, q.config.EventMiB, q.config.Figures)
		if err != nil {
			return err
		}
		words, err := list(reply, nil, 2)
		if err != nil {
			return err
		}
		switch word := text(words[0]); word {
		case "OK":
			n := number(words[1])
			if n < 1 || n > MaxPartitions {
				return fmt.Errorf("%w: its root %s says that it has %q partitions", ErrBroken, q.Root(p), text(words[1]))
			}
			q.config.Partitions = int(n)
		case "VERSION":
			if number(words[1]) < recordVersion {
				return fmt.Errorf("%w: its records are of version %s, this program knows %d", ErrOlder, text(words[1]), recordVersion)
			}
			return fmt.Errorf("%w: its records are of version %s, this program knows %d", ErrNewer, text(words[1]), recordVersion)
		case "RIGHTS":
			return q.lacks(p, words[1:])
		case "INVALID":
			return invalid(text(words[1]), "%s", text(words[len(words)-1]))
		case "PARTITIONS":
			return fmt.Errorf("%w: it has %s, not %d", ErrPartitions, text(words[1]), q.config.Partitions)
		default:
			return fmt.Errorf("open answered %q", word)
		}
	}
	return nil
}

// Partitions is how many the namespace has.
func (q *Queue) Partitions() int { return q.config.Partitions }

// Namespace is the name that it was opened by.
func (q *Queue) Namespace() string { return q.config.Namespace }

// Client is the connection to Redis.
func (q *Queue) Client() redis.UniversalClient { return q.rdb }

// Logger is where the queue, and what is built on it, logs.
func (q *Queue) Logger() *slog.Logger { return q.config.Logger }

// MaxBytes bounds a payload, a result, and the headers.
func (q *Queue) MaxBytes() int { return q.config.MaxBytes }

// byPartition sorts ids into partitions, keeping for each its place in the list.
func (q *Queue) byPartition(list []string) (map[int][]int, error) {
	places := map[int][]int{}
	for i, id := range list {
		p, err := partitionIn(id, q.config.Partitions)
		if err != nil {
			return nil, err
		}
		places[p] = append(places[p], i)
	}
	return places, nil
}

// eachPartition does a step for every partition that the ids are of, 500 a call,
// the partitions at once. It returns the first error.
func (q *Queue) eachPartition(list []string, step func(partition int, ids []any, places []int) error) error {
	places, err := q.byPartition(list)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make(chan error, len(places))
	for p, mine := range places {
		group.Go(func() {
			for len(mine) > 0 {
				n := min(len(mine), maxList)
				args := make([]any, n)
				for i, place := range mine[:n] {
					args[i] = list[place]
				}
				if err := step(p, args, mine[:n]); err != nil {
					errs <- err
					return
				}
				mine = mine[n:]
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

// knowsFunctions asks the server, until it answers, whether it knows Functions. A server
// that does also knows the flags of scripts, without which a full Redis would not drain.
func (q *Queue) knowsFunctions(ctx context.Context) (bool, error) {
	for start := time.Now(); ; {
		err := q.rdb.Eval(ctx, "#!lua flags=no-writes\nreturn 1", []string{q.Root(0)}).Err()
		if lua.MayNotRun(err) {
			return true, nil // the user has no right to scripts; that leaves functions
		}
		if passing, _ := classify(err); err == nil || !passing {
			return err == nil, nil
		}
		q.remap()
		if ctx.Err() != nil || time.Since(start) > waitFor {
			return false, unanswered(ctx, false, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// String names the namespace, never the server: its URL may hold a password.
func (q *Queue) String() string {
	return strings.TrimSpace(fmt.Sprintf("curfew namespace %s (%d partitions)", q.config.Namespace, q.config.Partitions))
}
