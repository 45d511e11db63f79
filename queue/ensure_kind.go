package queue

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// EnsureKind stores the defaults of a kind if the kind has none. It is for producers: with it, the first
// task of a kind has the defaults, whether a worker or a producer starts first. Workers and DefineKind replace the
// defaults. So of a producer and a worker with different defaults those of the worker apply, once it has started.
// EnsureKind logs a warning if the kind has other defaults. With the zero Defaults it stores nothing.
//
// EnsureKind makes a call to each partition, several at once. After a success this Queue makes no further call for
// the same kind and defaults. Concurrent callers share the calls, which continue when the context of one caller
// ends. If a call fails, all callers get its error, and the next EnsureKind tries again.
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
			f.err = refusal.Failed("define "+kind, "", q.ensure(context.WithoutCancel(ctx), kind, append(args, "existing", "keep")))
			q.kinds.end(kind, d, f)
		}()
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return refusal.Failed("define "+kind, "", context.Cause(ctx))
	}
}

// ensure makes the calls of EnsureKind.
func (q *Queue) ensure(ctx context.Context, kind string, args []any) error {
	var kept atomic.Bool
	err := q.engine.EachPartition(func(p int) error {
		words, err := worded(q.engine.Call(ctx, p, "define", args...))
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

// ensuredKinds knows the defaults that this program has stored or found.
type ensuredKinds struct {
	mu    sync.Mutex
	known map[kindDefaults]*ensuring
}

type kindDefaults struct {
	kind string
	Defaults
}

// ensuring is the calls for one kind. err is set before done is closed.
type ensuring struct {
	done chan struct{}
	err  error
}

// join returns the calls for a kind. first is true if the caller must make them.
func (k *ensuredKinds) join(kind string, d Defaults) (f *ensuring, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f = k.known[kindDefaults{kind, d}]; f != nil {
		return f, false
	}
	return k.add(kind, d), true
}

func (k *ensuredKinds) add(kind string, d Defaults) *ensuring {
	if k.known == nil {
		k.known = map[kindDefaults]*ensuring{}
	}
	f := &ensuring{done: make(chan struct{})}
	k.known[kindDefaults{kind, d}] = f
	return f
}

// end tells the callers that the calls are done. After an error the next caller calls again.
func (k *ensuredKinds) end(kind string, d Defaults, f *ensuring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.err != nil && k.known[kindDefaults{kind, d}] == f {
		delete(k.known, kindDefaults{kind, d})
	}
	close(f.done)
}

// defined notes that DefineKind has stored the defaults.
func (k *ensuredKinds) defined(kind string, d Defaults) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[kindDefaults{kind, d}] == nil {
		close(k.add(kind, d).done)
	}
}
