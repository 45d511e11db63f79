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
// reaper: the first call starts it, and the last call that returns ends it. The workers of a
// process use RunShared, since several reapers would do no more than one. RunShared logs errors
// and tries again. It panics if an argument is nil.
func RunShared(ctx context.Context, of Namespace, logger *slog.Logger) {
	if engine.IsNil(ctx) || engine.IsNil(of) || logger == nil {
		panic("reaper: RunShared needs a context, a namespace, as queue.Open returns it, and a logger")
	}
	leave := enter(of, logger)
	<-ctx.Done()
	leave()
}

// shared holds the reapers that RunShared has started.
var (
	sharedMu sync.Mutex
	shared   = map[*engine.Engine]*sharedReaper{}
)

type sharedReaper struct {
	users int // guarded by sharedMu
	stop  context.CancelFunc
	ended chan struct{}
}

// enter starts the namespace's reaper if none runs. The last user that leaves ends the reaper, and
// waits until it has ended.
func enter(of Namespace, logger *slog.Logger) (leave func()) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	s := shared[of.Engine()]
	if s == nil {
		ctx, stop := context.WithCancel(context.Background())
		s = &sharedReaper{stop: stop, ended: make(chan struct{})}
		shared[of.Engine()] = s
		go func() {
			defer close(s.ended)
			for r := New(of, Config{Logger: logger}); ctx.Err() == nil; {
				err := r.Run(ctx)
				if errors.Is(err, refusal.ErrClosed) || errors.Is(err, refusal.ErrNewer) {
					return // the workers end too
				}
				if err != nil { // at the start: somebody may still grant the right, or set the password
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
			delete(shared, of.Engine())
		}
		sharedMu.Unlock()
		if last {
			s.stop()
			<-s.ended
		}
	}
}
