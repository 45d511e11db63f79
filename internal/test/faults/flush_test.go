package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
)

// Functions and scripts are flushed all the time, and Redis restarts. No call fails.
func TestForgottenCallsFailNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := withAOF(t, dir, "always")
	s := newStage(t, server.Addr, server.Addr)
	flushes := 0
	operator := harness.Client(t, server.Addr)
	flush := func() (stop func()) {
		return s.Run(func(ctx context.Context) error {
			for first := flushes; flushes < first+20 || ctx.Err() == nil; flushes++ {
				if err := errors.Join(operator.FunctionFlush(s.Context()).Err(), operator.ScriptFlush(s.Context()).Err()); err != nil {
					return err
				}
				harness.Pass(time.Millisecond) // sleeps: so that calls run between two flushes
			}
			return nil
		})
	}
	stopFleet := s.fleet(2, 6*time.Second)
	stopClerk := s.Run(s.clerk)
	stopProducer := s.Run(func(ctx context.Context) error { return s.produce(ctx, 10*time.Millisecond) })
	load := func(least int) { // on a busy machine it takes longer
		await.Until(t, fmt.Sprint(least, " tasks are enqueued"), func() bool { return len(s.Ledger.Copy().Tasks) >= least })
	}
	stop := flush()
	harness.Pass(time.Second) // sleeps: the load
	load(50)
	stop()
	const slow = "no reply came from Redis" // the machine was busy: a script that is not known is answered with an error
	for line := range strings.Lines(s.Logs.String()) {
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, slow) {
			t.Errorf("an error was logged while the functions and scripts were flushed: %s", line)
		}
	}
	server.Kill()
	s.mend(dir)
	server.Restart(t)
	loaded(t, server)
	stop = flush()
	harness.Pass(time.Second) // sleeps: the load
	load(100)
	stopProducer()
	s.drained()
	stop()
	stopClerk()
	stats := stopFleet()
	s.untroubled()
	s.sameCount(stats.Completed, s.account(nothing))
	t.Logf("%d tasks under %d flushes and a restart; the fleet: %+v", len(s.Ledger.Copy().Tasks), flushes, stats)
}
