// Package operate administers a Redis as a whole: it loads and removes libraries of functions, and creates,
// lists and removes namespaces. It works on one server and on all masters of a cluster.
package operate

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/refusal"
)

// Server is a Redis server, or all masters of a cluster.
type Server struct {
	rdb     redis.UniversalClient
	engine  *engine.Engine // explains errors
	masters []master
}

// master is a server that is not a replica.
type master struct {
	name string // its address
	rdb  *redis.Client
}

// Connect checks the server and finds its masters. It changes nothing. It returns an error of package refusal if the server cannot be reached,
// or Curfew cannot work with it: it is a replica, for example.
func Connect(ctx context.Context, rdb redis.UniversalClient) (*Server, error) {
	library, err := lua.Load(lua.Options{Functions: true}) // never run: with a library engine.New asks for fewer rights
	if err != nil {
		return nil, err
	}
	e, err := engine.New(ctx, rdb, engine.Config{Namespace: "curfew", Logger: slog.New(slog.DiscardHandler), Library: library})
	if err != nil {
		return nil, err
	}
	s := &Server{rdb: rdb, engine: e}
	switch rdb := rdb.(type) {
	case *redis.Client:
		s.masters = []master{{nameOf(rdb), rdb}}
	case *redis.ClusterClient:
		var mu sync.Mutex
		err = rdb.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			s.masters = append(s.masters, master{nameOf(node), node})
			return nil
		})
	default:
		err = refusal.Invalid("client", "is neither of one server nor of a cluster: make it with queue.Connect")
	}
	slices.SortFunc(s.masters, func(a, b master) int { return strings.Compare(a.name, b.name) })
	return s, s.explain(ctx, err)
}

// nameOf returns the address of a server, and "master" if only the sentinels know it.
func nameOf(rdb *redis.Client) string {
	if addr := rdb.Options().Addr; strings.ContainsAny(addr, ":/") {
		return addr
	}
	return "master"
}

// Masters returns the addresses of the masters, sorted.
func (s *Server) Masters() (names []string) {
	for _, m := range s.masters {
		names = append(names, m.name)
	}
	return names
}

// Each calls look for each master, in the order of their addresses.
func (s *Server) Each(look func(name string, rdb *redis.Client)) {
	for _, m := range s.masters {
		look(m.name, m.rdb)
	}
}

// Client returns the client that Connect was given.
func (s *Server) Client() redis.UniversalClient { return s.rdb }

// explain adds the cure to an error of Redis or of the connection.
func (s *Server) explain(ctx context.Context, err error) error { return s.engine.Unread(ctx, 0, err) }

// explainKeys is like explain, for commands about the keys of a namespace.
func (s *Server) explainKeys(ctx context.Context, namespace string, err error) error {
	if err != nil && engine.Denied(err) && strings.Contains(err.Error(), "key") {
		return wrapped(refusal.ErrNoRight, "it needs ~"+namespace+":{*", err)
	}
	return s.explain(ctx, err)
}

// scanCount is about how many keys a SCAN looks at. It takes Redis a fraction of a millisecond.
const scanCount = 1000

// Looked is the progress of a scan.
type Looked struct {
	Masters int   // that were looked at, wholly or in part
	Keys    int64 // about how many keys were looked at
	Of      int64 // how many keys the masters have
	Whole   bool  // every key was looked at
}

// scan calls page for the keys of all masters that match a pattern, and done after each page. It looks at
// about limit keys of each master; 0: at all of them. It takes at most half of the time of Redis: after each command
// it rests as long as that took.
func (s *Server) scan(ctx context.Context, pattern string, limit int64, page func(keys []string) error, done func(Looked)) (Looked, error) {
	progress := Looked{Whole: true}
	sizes := make([]int64, len(s.masters))
	for i, m := range s.masters {
		size, err := m.rdb.DBSize(ctx).Result()
		if err != nil {
			return progress, s.on(m, s.explain(ctx, err))
		}
		sizes[i] = size
		progress.Of += size
	}
	before := int64(0) // keys of the masters that are done
	for i, m := range s.masters {
		progress.Masters++
		var cursor uint64
		for n := int64(scanCount); ; n += scanCount {
			began := time.Now()
			keys, next, err := m.rdb.Scan(ctx, cursor, pattern, scanCount).Result()
			if err != nil {
				return progress, s.on(m, s.explain(ctx, err))
			}
			if err := page(keys); err != nil {
				return progress, s.on(m, err)
			}
			cursor = next
			progress.Keys = before + min(n, sizes[i])
			if cursor == 0 {
				progress.Keys = before + sizes[i]
			}
			done(progress)
			if cursor == 0 {
				break
			}
			if limit > 0 && n >= limit {
				progress.Whole = false
				break
			}
			if err := rest(ctx, min(time.Since(began), 20*time.Millisecond)); err != nil {
				return progress, err
			}
		}
		before = progress.Keys
	}
	return progress, nil
}

// on adds the address of a master to an error, if there are several.
func (s *Server) on(m master, err error) error {
	if err == nil || len(s.masters) == 1 {
		return err
	}
	return &nodeError{m.name, err}
}

// nodeError is an error with the address of the server.
type nodeError struct {
	node string
	err  error
}

func (e *nodeError) Error() string { return e.node + ": " + e.err.Error() }

func (e *nodeError) Unwrap() error { return e.err }

// rest returns after d, or with the cause when ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
