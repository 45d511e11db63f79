package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// Config adjusts a Queue. The zero value is ready to use.
type Config struct {
	// Namespace is the name of one deployment on a Redis. Defaults to "curfew".
	Namespace string
	// Partitions is the number of partitions. Each is in one slot of a cluster. It is fixed when
	// the namespace is created. Defaults to the number that the namespace has, 1 if it is new.
	Partitions int
	// MaxBytes bounds a payload, a result, and the headers of a task. Defaults to 1 MiB.
	MaxBytes int
	// Events selects the events that a new namespace writes to its event streams. Defaults to
	// EventsTerminal. An existing namespace keeps its own settings: Open logs a warning if Events,
	// EventMiB or Figures differ from them. [Queue.Configure] changes them.
	Events EventLevel
	// EventMiB is the approximate size of a new namespace's event stream, in MiB per partition, 1 to
	// 65,536. Older events are removed. Defaults to 64.
	EventMiB int
	// Figures switches the statistics of a new namespace "on" (the default) or "off". They count by
	// kind how tasks ended and how long they took. inspect.Figures reads them.
	Figures string
	// Access is the kind of calls that the program will make. Open checks that its Redis user has
	// the rights for them. Defaults to AccessAll.
	Access Access
	// Existing makes Open return [refusal.ErrNoNamespace] for a namespace that does not exist,
	// instead of creating it.
	Existing bool
	// Strict makes Open refuse a Redis whose settings can lose tasks. Otherwise Open logs a
	// warning.
	Strict bool
	// Tracing makes OpenTelemetry spans. The zero value makes none.
	Tracing Tracing
	// Logger defaults to slog.Default.
	Logger *slog.Logger
	// Library is the Lua code to run. Defaults to the code in package lua, loaded as functions if
	// the server supports them, otherwise as scripts. Tests pass a library whose clock they control.
	Library *lua.Library
}

// Access is a set of calls that a program makes. docs/how-to/security.md lists the Redis rights that
// each needs.
type Access string

// The kinds of access. With AccessRead, Open does not create a namespace, and the user needs no
// right to change one.
const (
	AccessAll     Access = "all"
	AccessProduce Access = "produce" // enqueue, cancel, resolve, signal, wait for results
	AccessWork    Access = "work"    // run tasks and agents, and sweep
	AccessReap    Access = "reap"    // sweep
	AccessRead    Access = "read"    // explain, list, events, audit, export, figures
)

// Queue is a namespace on a Redis. It is safe for concurrent use. Open starts no goroutine.
type Queue struct {
	config Config
	engine *engine.Engine
	tracer *spans.Tracer // nil: no tracing

	ids      names.Maker
	turn     atomic.Uint32 // counts root tasks, to spread them over the partitions
	batchers []batcher     // one for each partition: concurrent enqueues share calls
	watches  watches
	kinds    ensuredKinds
}

// Open opens a namespace, and creates it if it is new. With AccessRead or Config.Existing it does
// not create it, and returns [refusal.ErrNoNamespace]. Open refuses
//   - a namespace with another number of partitions ([refusal.ErrPartitions]),
//   - a namespace of a newer or an older version ([refusal.ErrNewer], [refusal.ErrOlder]),
//   - a Redis that Curfew cannot work with ([refusal.ErrUnfit]),
//   - a user who lacks a right that Config.Access needs ([refusal.ErrNoRight]).
//
// Use a client with ContextTimeoutEnabled, as [Connect] makes them. A call that gets no reply is
// then repeated after a second. Without it, the call is repeated only after the client's
// ReadTimeout.
//
// Open adds a hook to the client. On connections that are made later, a timeout counts from the last
// byte that was sent or received, because a large reply can take longer than the timeout as a whole.
// The first Open of a process also redirects the log of go-redis to its logger: see [LogClient].
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
	firstLogger.CompareAndSwap(nil, config.Logger)
	e, err := engine.New(ctx, rdb, engine.Config{Namespace: config.Namespace, Partitions: config.Partitions, Strict: config.Strict,
		Logger: config.Logger, Library: config.Library})
	if err != nil {
		return nil, refusal.Failed("open", "", err)
	}
	q := &Queue{config: config, engine: e, tracer: config.Tracing.tracer(rdb)}
	if err := q.create(ctx); err != nil {
		return nil, refusal.Failed("open", "", err)
	}
	if q.tracer != nil {
		e.OnReport(q.traceExpired)
	}
	q.batchers = make([]batcher, e.Partitions())
	if config.Library == nil && (config.Access == AccessAll || config.Access == AccessReap) {
		e.OfferFacade(ctx)
	}
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
	if err := c.settings().check(); err != nil {
		return err
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

// removingError is [refusal.ErrRemoving] with the command that finishes the removal.
type removingError struct{ namespace string }

func (e *removingError) Error() string {
	return fmt.Sprintf("the namespace %s is being removed: run `curfew namespace rm %s` to finish that", e.namespace, e.namespace)
}

func (e *removingError) Unwrap() error { return refusal.ErrRemoving }

// create creates or checks the root of every partition. Partition 0 is first, because its root
// stores the number of partitions, which the loop needs.
func (q *Queue) create(ctx context.Context) error {
	mine := q.engine.Library().Versions()
	root := "new"
	if q.config.Existing {
		root = "existing"
	}
	for p := 0; p == 0 || p < q.Partitions(); p++ {
		words, err := engine.Words(q.engine.Call(ctx, p, "open", mine.Newest, q.Partitions(),
			cmp.Or(string(q.config.Events), string(EventsTerminal)), q.config.EventMiB, cmp.Or(q.config.Figures, "on"), string(q.config.Access), root))
		if err != nil {
			return err
		}
		word := engine.Text(words[0])
		if word != "MISSING" && len(words) < 2 {
			return engine.Unexpected("answer to open", words)
		}
		switch word {
		case "OK":
			n := engine.Number(words[1])
			if n < 1 || n > MaxPartitions {
				return fmt.Errorf("%w: its root %s has %q partitions", refusal.ErrBroken, q.Root(p), engine.Text(words[1]))
			}
			q.engine.SetPartitions(int(n))
			if p == 0 { // the others have the same settings
				q.warnOfSettings(words)
			}
		case "VERSION":
			err := engine.OtherVersion(engine.Text(words[1]), mine)
			if errors.Is(err, refusal.ErrRemoving) {
				return &removingError{q.config.Namespace}
			}
			if err != nil {
				return err
			}
			return engine.Unexpected("answer to open", words)
		case "RIGHTS":
			return q.engine.Lacks(ctx, p, words[1:])
		case "MISSING":
			return fmt.Errorf("%w: %s", refusal.ErrNoNamespace, q.config.Namespace)
		case "PARTITIONS":
			return fmt.Errorf("%w: it has %s, not %d", refusal.ErrPartitions, engine.Text(words[1]), q.Partitions())
		default:
			return engine.Unexpected("answer to open", words)
		}
	}
	return nil
}

// Partitions returns the number of partitions of the namespace.
func (q *Queue) Partitions() int { return q.opened().engine.Partitions() }

// Namespace returns the name of the namespace.
func (q *Queue) Namespace() string { return q.opened().config.Namespace }

// Client returns the client that Open was given.
func (q *Queue) Client() redis.UniversalClient { return q.opened().engine.Client() }

// Engine returns the queue's connection to Redis. It is for the other packages of this module.
func (q *Queue) Engine() *engine.Engine { return q.opened().engine }

// Tracer returns the queue's tracer, nil without Config.Tracing. It is for the other packages of
// this module.
func (q *Queue) Tracer() *spans.Tracer { return q.opened().tracer }

// Logger returns the logger of the queue. Packages that use the queue log to it too.
func (q *Queue) Logger() *slog.Logger { return q.opened().config.Logger }

// Root returns the key of a partition's root. All other keys of the partition begin with it.
func (q *Queue) Root(partition int) string { return q.opened().engine.Root(partition) }

// EventsKey returns the key of a partition's event stream.
func (q *Queue) EventsKey(partition int) string { return q.opened().engine.EventsKey(partition) }

// MaxBytes returns the limit of a payload, a result, and the headers of a task.
func (q *Queue) MaxBytes() int { return q.opened().config.MaxBytes }

// String returns the name of the namespace and its number of partitions. It never names the
// server, whose URL can contain a password.
func (q *Queue) String() string {
	q.opened()
	return strings.TrimSpace(fmt.Sprintf("curfew namespace %s (%d partitions)", q.config.Namespace, q.Partitions()))
}

// ready returns an error for a queue that Open did not return, and for a nil context. Every method
// calls it first, because a nil pointer would otherwise panic inside the engine.
func (q *Queue) ready(ctx context.Context) error {
	if q == nil || q.engine == nil {
		return refusal.Invalid("queue", "is nil or empty: use one that Open returned")
	}
	return engine.Given(ctx)
}

// Ready returns [refusal.ErrInvalid] for a queue that Open did not return, and for a context that
// is nil. It is for the other packages of this module.
func (q *Queue) Ready(ctx context.Context) error { return q.ready(ctx) }

// opened panics if q is nil or empty. It is for functions that return no error.
func (q *Queue) opened() *Queue {
	if q == nil || q.engine == nil {
		panic("queue: a *Queue is nil or empty: use one that Open returned")
	}
	return q
}

// byPartition groups the indexes of list by the partition of the id.
func (q *Queue) byPartition(list []string) (map[int][]int, error) {
	places := map[int][]int{}
	for i, id := range list {
		p, err := names.PartitionIn(id, q.Partitions())
		if err != nil {
			return nil, err
		}
		places[p] = append(places[p], i)
	}
	return places, nil
}

// eachPartition calls step for the ids of each partition, up to 500 ids at a time. Partitions run
// concurrently, and the calls of each partition one after the other. places are the indexes of ids
// in list. It returns the first error.
func (q *Queue) eachPartition(list []string, step func(partition int, ids []any, places []int) error) error {
	places, err := q.byPartition(list)
	if err != nil {
		return err
	}
	partitions := slices.Sorted(maps.Keys(places))
	return engine.Each(len(partitions), func(i int) error {
		for mine := range slices.Chunk(places[partitions[i]], engine.MaxTasks) {
			args := make([]any, len(mine))
			for i, place := range mine {
				args[i] = list[place]
			}
			if err := step(partitions[i], args, mine); err != nil {
				return err
			}
		}
		return nil
	})
}

// The checks below repeat lua/check/values.lua, so that an invalid name fails without a call to
// Redis.

func checkKind(field, kind string) error {
	if !names.Valid(kind, "._-:/") {
		return refusal.Invalid(field, "%q must be 1 to 128 of A-Z a-z 0-9 . _ - : / and begin with a letter or digit", refusal.Clip(kind))
	}
	return nil
}

func checkQueue(field, queue string) error {
	if !names.Valid(queue, "._-") {
		return refusal.Invalid(field, "%q must be 1 to 128 of A-Z a-z 0-9 . _ - and begin with a letter or digit", refusal.Clip(queue))
	}
	return nil
}

// CheckCall returns [refusal.ErrInvalid] for a name that a call cannot have.
func CheckCall(call string) error {
	if !names.Word(call) || len(call) > 100 {
		return refusal.Invalid("call", "%q must be one word of up to 100 bytes, in ASCII, that begins with a letter or digit: a new one for each change, and the same for a repeat", refusal.Clip(call))
	}
	return nil
}
