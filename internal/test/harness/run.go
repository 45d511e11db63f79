package harness

import (
	"context"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/reaper"
)

// Run calls what in a goroutine. what must run until its context ends. stop ends the context
// and waits for what to return; the end of the test does so too.
func (s *Stage) Run(what func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- what(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				s.Errorf("Run = %v, want nil", err)
			}
		case <-time.After(await.Limit(s)):
			s.Error("Run did not return")
		}
	})
	s.Cleanup(stop)
	return stop
}

// Reap runs a reaper in this process.
func (s *Stage) Reap(config reaper.Config) (stop func()) {
	s.Helper()
	return s.Run(reaper.New(s.Another(), config).Run)
}
