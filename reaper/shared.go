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

// RunShared runs a reaper until ctx ends. Of all who run one for the same opened namespace
// at the same time, as the workers of a process do, only the first starts one, and it ends
// with the last: many would do no more than one does.
func RunShared(ctx context.Context, of Namespace, logger *slog.Logger) {
	if engine.IsNil(ctx) || engine.IsNil(of) || logger == nil {
		panic("reaper: RunShared needs a context, a namespace, as queue.Open returns it, and a logger")
	}
	leave := enter(of, logger)
	<-ctx.Done()
	leave()
}

// shared are the reapers that run so.
var (
	sharedMu sync.Mutex
	shared   = map[*engine.Engine]*sharedReaper{}
)

type sharedReaper struct {
	users int // guarded by sharedMu
	stop  context.CancelFunc
	ended chan struct{}
}

// enter starts the namespace's reaper if none runs. The last user that leaves waits for its end.
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
				if errors.Is(err, refusal.ErrClosed) {
					return // the workers end too
				}
				if err != nil { // at its start; a right or a password may come
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
