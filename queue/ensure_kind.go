package queue

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// EnsureKind stores the defaults of a kind if the kind has none. It is for producers: with it, the
// first task of a kind has the defaults, whether a worker or a producer starts first. EnsureKind
// does not replace defaults, as workers and DefineKind do. So if a producer and a worker have
// different defaults, the worker's apply once it has started. EnsureKind logs a warning if the kind
// has other defaults. With the zero Defaults it stores nothing.
//
// EnsureKind makes a call to each partition, several at once. After a success this Queue makes no
// further call for the same kind and defaults. Concurrent callers share the calls, which continue
// when the context of one caller ends. If a call fails, all callers get its error, and the next
// EnsureKind tries again.
func (q *Queue) EnsureKind(ctx context.Context, kind string, d Defaults) error {
	if err := q.ready(ctx); err != nil {
		return refusal.Failed("define kind", "", err)
	}
	args, err := q.defaultsOf(kind, d)
	if err != nil {
		return refusal.Failed("define a kind", "", err)
	}
	if d == (Defaults{}) {
		return nil
	}
	f, first := q.kinds.join(kind, d)
	if first {
		go func() {
			// Without this caller's cancellation, because other callers share the calls.
			f.err = refusal.Failed("define "+kind, "", q.ensure(context.WithoutCancel(ctx), kind, append(args, "existing", "keep")))
			q.kinds.end(kind, d, f)
		}()
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return refusal.Failed("define "+kind, "", q.engine.InVain(ctx))
	}
}

// ensure makes the calls of EnsureKind.
func (q *Queue) ensure(ctx context.Context, kind string, args []any) error {
	var kept atomic.Bool
	err := q.engine.EachPartition(func(p int) error {
		words, err := engine.Words(q.engine.Call(ctx, p, "define", args...))
		if err == nil && engine.Text(words[0]) == "KEPT" {
			kept.Store(true)
		}
		return err
	})
	if kept.Load() {
		q.config.Logger.Warn("This program has other defaults for a kind than the namespace, and the latter apply", "kind", kind)
	}
	return err
}

// ensuredKinds caches the defaults that this program has stored, or found to be stored.
type ensuredKinds struct {
	mu    sync.Mutex
	calls map[kindDefaults]*ensuring
}

type kindDefaults struct {
	kind string
	Defaults
}

// ensuring represents the calls for one kind, which concurrent callers share. err is set before done
// is closed.
type ensuring struct {
	done chan struct{}
	err  error
}

// join returns the calls for a kind. first is true if the caller must make them.
func (k *ensuredKinds) join(kind string, d Defaults) (f *ensuring, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f = k.calls[kindDefaults{kind, d}]; f != nil {
		return f, false
	}
	return k.add(kind, d), true
}

func (k *ensuredKinds) add(kind string, d Defaults) *ensuring {
	if k.calls == nil {
		k.calls = map[kindDefaults]*ensuring{}
	}
	f := &ensuring{done: make(chan struct{})}
	k.calls[kindDefaults{kind, d}] = f
	return f
}

// end wakes the callers. After an error it forgets the calls, so that the next caller tries again.
func (k *ensuredKinds) end(kind string, d Defaults, f *ensuring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.err != nil && k.calls[kindDefaults{kind, d}] == f {
		delete(k.calls, kindDefaults{kind, d})
	}
	close(f.done)
}

// defined records that DefineKind has stored the defaults, so that EnsureKind makes no call for
// them.
func (k *ensuredKinds) defined(kind string, d Defaults) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.calls[kindDefaults{kind, d}] == nil {
		close(k.add(kind, d).done)
	}
}
