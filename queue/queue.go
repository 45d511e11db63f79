package queue

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
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
	// Events is what a new namespace tells in its event streams. Defaults to
	// EventsTerminal.
	Events EventLevel
	// EventMiB is about how many MiB of events a partition of a new namespace keeps, 1 to
	// 65,536. Defaults to 64.
	EventMiB int
	// Figures is whether a new namespace counts by kind how tasks ended and how long
	// they took, for inspect.Figures: "on" (the default) or "off".
	Figures string
	// Access is what the program does with the namespace, and so which rights Open asks for.
	// Defaults to AccessAll.
	Access Access
	// Strict refuses a Redis whose settings may lose tasks, where otherwise a
	// warning is logged.
	Strict bool
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Library is the Lua to run. Defaults to that of package lua, in the form that
	// the server knows; tests give one with a clock of their own.
	Library *lua.Library
}

// Access is what a program does with a namespace. docs/security.md has the rights of each.
type Access string

// What programs do. AccessRead makes no namespace, and its user cannot change one.
const (
	AccessAll     Access = "all"
	AccessProduce Access = "produce" // enqueue, cancel, resolve, signal, wait for results
	AccessWork    Access = "work"    // run tasks and agents, and sweep
	AccessReap    Access = "reap"    // sweep
	AccessRead    Access = "read"    // explain, events, audit, export, figures
)

// Queue is a namespace on a Redis. It is safe for concurrent use and starts no
// goroutine by itself.
type Queue struct {
	config Config
	engine *engine.Engine

	ids       names.Maker
	turn      atomic.Uint32 // spreads root tasks over the partitions
	batchers  []batcher     // one a partition: concurrent enqueues share calls
	watches   watches
	wakeLines wakeLines
}

// Open opens a namespace and creates it if it is new. It refuses a namespace with
// another number of partitions ([refusal.ErrPartitions]) or of a newer version
// ([refusal.ErrNewer]), a Redis that cannot work ([refusal.ErrUnfit]), and a user who lacks a right that
// the program needs for what Config.Access says that it does ([refusal.ErrNoRight]).
//
// Give a client with ContextTimeoutEnabled, as [Connect] does: then a call that gets
// no answer is repeated after a second, otherwise after the client's ReadTimeout. Open
// adds a hook to the client: on connections that it makes from then on, time-outs count
// from the last byte that passed, so that a large reply may take longer than they say.
func Open(ctx context.Context, rdb redis.UniversalClient, config Config) (*Queue, error) {
	if err := engine.Given(ctx); err != nil {
		return nil, refusal.Failed("open", "", err)
	}
	if engine.IsNil(rdb) {
		return nil, refusal.Failed("open", "", refusal.Invalid("client", "is nil: make one with queue.Connect"))
	}
	if err := config.complete(); err != nil {
		return nil, refusal.Failed("open", "", err)
	}
	e, err := engine.New(ctx, rdb, engine.Config{Namespace: config.Namespace, Partitions: config.Partitions, Strict: config.Strict,
		Logger: config.Logger, Library: config.Library})
	if err != nil {
		return nil, refusal.Failed("open", "", err)
	}
	q := &Queue{config: config, engine: e}
	if err := q.create(ctx); err != nil {
		return nil, refusal.Failed("open", "", err)
	}
	q.batchers = make([]batcher, e.Partitions())
	return q, nil
}

func (c *Config) complete() error {
	if c.Namespace == "" {
		c.Namespace = "curfew"
	}
	if !names.Valid(c.Namespace, "._-:") {
		return refusal.Invalid("namespace", "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : and begin with a letter or digit", refusal.Clip(c.Namespace))
	}
	if c.Partitions < 0 || c.Partitions > MaxPartitions {
		return refusal.Invalid("partitions", "%d must be 1 to %d, or 0 for what the namespace has", c.Partitions, MaxPartitions)
	}
	if c.MaxBytes < 0 {
		return refusal.Invalid("max bytes", "%d must not be negative", c.MaxBytes)
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 20
	}
	if c.Events == "" {
		c.Events = EventsTerminal
	}
	if c.Events != EventsAll && c.Events != EventsTerminal && c.Events != EventsNone {
		return refusal.Invalid("events", "%q must be all, terminal or none", refusal.Clip(string(c.Events)))
	}
	if c.EventMiB < 0 || c.EventMiB > 65536 {
		return refusal.Invalid("event MiB", "%d must be 1 to 65536, or 0 for 64", c.EventMiB)
	}
	if c.Figures == "" {
		c.Figures = "on"
	}
	if c.Figures != "on" && c.Figures != "off" {
		return refusal.Invalid("figures", "%q must be on or off", refusal.Clip(c.Figures))
	}
	switch c.Access {
	case "":
		c.Access = AccessAll
	case AccessAll, AccessProduce, AccessWork, AccessReap, AccessRead:
	default:
		return refusal.Invalid("access", "%q must be produce, work, reap, read or all", refusal.Clip(string(c.Access)))
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// create makes or compares the root of every partition, the first one first: it
// says how many there are.
func (q *Queue) create(ctx context.Context) error {
	for p := 0; p == 0 || p < q.Partitions(); p++ {
		reply, err := q.engine.Call(ctx, p, "open", recordVersion, q.Partitions(), string(q.config.Events), q.config.EventMiB, q.config.Figures, string(q.config.Access))
		if err != nil {
			return err
		}
		words, err := engine.List(reply, nil, 1)
		if err != nil {
			return err
		}
		word := engine.Text(words[0])
		if word != "MISSING" && len(words) < 2 {
			return fmt.Errorf("open answered %.100v", words)
		}
		switch word {
		case "OK":
			n := engine.Number(words[1])
			if n < 1 || n > MaxPartitions {
				return fmt.Errorf("%w: its root %s says that it has %q partitions", refusal.ErrBroken, q.Root(p), engine.Text(words[1]))
			}
			q.engine.SetPartitions(int(n))
		case "VERSION":
			if engine.Number(words[1]) < recordVersion {
				return fmt.Errorf("%w: its records are of version %s, this program knows %d", refusal.ErrOlder, engine.Text(words[1]), recordVersion)
			}
			return fmt.Errorf("%w: its records are of version %s, this program knows %d", refusal.ErrNewer, engine.Text(words[1]), recordVersion)
		case "RIGHTS":
			return q.engine.Lacks(ctx, p, words[1:])
		case "MISSING":
			return fmt.Errorf("%w: %s", refusal.ErrNoNamespace, q.config.Namespace)
		case "INVALID":
			return refusal.Invalid(engine.Text(words[1]), "%s", engine.Text(words[len(words)-1]))
		case "PARTITIONS":
			return fmt.Errorf("%w: it has %s, not %d", refusal.ErrPartitions, engine.Text(words[1]), q.Partitions())
		default:
			return fmt.Errorf("open answered %q", word)
		}
	}
	return nil
}

// Partitions is how many the namespace has.
func (q *Queue) Partitions() int { return q.opened().engine.Partitions() }

// Namespace is the name that it was opened by.
func (q *Queue) Namespace() string { return q.opened().config.Namespace }

// Client is the connection to Redis.
func (q *Queue) Client() redis.UniversalClient { return q.opened().engine.Client() }

// Engine is for the other packages of this module.
func (q *Queue) Engine() *engine.Engine { return q.opened().engine }

// Logger is where the queue, and what is built on it, logs.
func (q *Queue) Logger() *slog.Logger { return q.opened().config.Logger }

// Root is the key that a partition begins with, in front of all its other keys.
func (q *Queue) Root(partition int) string { return q.opened().engine.Root(partition) }

// EventsKey is the stream of a partition's events.
func (q *Queue) EventsKey(partition int) string { return q.opened().engine.EventsKey(partition) }

// MaxBytes bounds a payload, a result, and the headers.
func (q *Queue) MaxBytes() int { return q.opened().config.MaxBytes }

// String names the namespace, never the server: its URL may hold a password.
func (q *Queue) String() string {
	q.opened()
	return strings.TrimSpace(fmt.Sprintf("curfew namespace %s (%d partitions)", q.config.Namespace, q.Partitions()))
}
