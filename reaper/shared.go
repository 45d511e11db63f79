package reaper

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// RunShared runs a reaper until ctx ends. Concurrent calls for the same opened namespace share one
// reaper, because several would do no more than one: the first call starts it, and the last call
// that returns ends it. The workers of a process use RunShared. It logs errors and tries again. It
// panics if an argument is nil.
func RunShared(ctx context.Context, ns Namespace, logger *slog.Logger) {
	if engine.IsNil(ctx) || engine.IsNil(ns) || logger == nil {
		panic("reaper: RunShared needs a context, a namespace, as queue.Open returns it, and a logger")
	}
	leave := enter(ns, logger)
	<-ctx.Done()
	leave()
}

// shared holds the running reapers of RunShared, by namespace.
var (
	sharedMu sync.Mutex
	shared   = map[*engine.Engine]*sharedReaper{}
)

type sharedReaper struct {
	users int // guarded by sharedMu
	stop  context.CancelFunc
	done  chan struct{}
}

// enter starts the namespace's reaper if none runs. The last user that leaves stops the reaper, and
// waits until it has stopped.
func enter(ns Namespace, logger *slog.Logger) (leave func()) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	s := shared[ns.Engine()]
	if s == nil {
		ctx, stop := context.WithCancel(context.Background())
		s = &sharedReaper{stop: stop, done: make(chan struct{})}
		shared[ns.Engine()] = s
		go func() {
			defer close(s.done)
			for r := New(ns, Config{Logger: logger}); ctx.Err() == nil; {
				err := r.Run(ctx)
				if errors.Is(err, refusal.ErrClosed) || errors.Is(err, refusal.ErrNewer) {
					return // the workers end too
				}
				if err != nil { // Run gave up at its first sweep, but somebody may still grant the right or set the password
					logger.Error("The reaper cannot sweep", "error", err)
					rest(ctx, time.Second, nil)
				}
			}
		}()
	}
	s.users++
	return func() {
		sharedMu.Lock()
		s.users--
		last := s.users == 0
		if last {
			delete(shared, ns.Engine())
		}
		sharedMu.Unlock()
		if last {
			// Without the lock, because the reaper can still be in a sweep.
			s.stop()
			<-s.done
		}
	}
}
