// Package reaper ends the tasks whose time is up. A reaper calls the sweep of each partition
// when something is due there. The sweep also puts delayed tasks in line, gives back the
// tasks of dead workers, and removes records whose retention is over.
//
// A reaper is an alarm clock and does not poll. Each sweep returns how long nothing is
// due. Redis sends an alarm if something becomes due earlier; a lost alarm costs at most
// Config.Fallback. Any number of reapers can run, on any host. A sweep is one script, so a
// reaper that is killed loses nothing. Only the reaper that has a partition's turn sweeps
// exactly when something is due, so many reapers cost little more than one. Correctness
// does not depend on reapers: every call that writes ends a late task before it uses it.
package reaper

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/refusal"
)

// Config adjusts a Reaper. The zero value is ready to use.
type Config struct {
	// Batch is the greatest number of tasks of a clock that one sweep ends. More than 250 counts
	// as 250. Defaults to 100 for the first sweep, and to 250 for the sweeps that follow while
	// more tasks are due.
	Batch int
	// Fallback is the longest time between two sweeps of the reaper that has the turn.
	// Less than 1 ms counts as 1 ms. Defaults to 500 ms. Another reaper waits 60 times as long at
	// most.
	Fallback time.Duration
	// Name is the beginning of the reaper's name in Redis. Defaults to the name of the host. A
	// character other than a letter, a digit, or one of . _ - becomes _.
	Name string
	// Logger defaults to the queue's.
	Logger *slog.Logger
	// Observe, if set, is called after each sweep that succeeded. Each partition calls it from
	// a goroutine of its own, and sweeps again only after Observe has returned.
	Observe func(partition int, swept Swept)
}

// Reaper sweeps the partitions of a namespace.
type Reaper struct {
	of     Namespace
	config Config
	crowd  int // the batch while more is due than one call ends
	name   string
}

// New returns a reaper. It does nothing before Run. If the namespace is nil, Run returns an error.
func New(of Namespace, config Config) *Reaper {
	if engine.IsNil(of) {
		return &Reaper{}
	}
	crowd := config.Batch
	if config.Batch <= 0 {
		config.Batch, crowd = 100, maxBatch
	}
	if config.Fallback <= 0 {
		config.Fallback = 500 * time.Millisecond
	}
	config.Fallback = max(config.Fallback, time.Millisecond)
	if config.Logger == nil {
		config.Logger = of.Engine().Logger()
	}
	if config.Observe == nil {
		config.Observe = func(int, Swept) {}
	}
	if config.Name == "" {
		config.Name, _ = os.Hostname()
	}
	// The name is unique: a reaper holds the turn by its name.
	return &Reaper{of: of, config: config, crowd: crowd, name: names.OfProcess(config.Name)}
}

// Run sweeps until ctx ends, and then returns nil. It leaves no goroutine behind. If Redis is
// away, Run continues to try, and sweeps again about a second after Redis is back.
//
// Run returns an error if the first sweep of a partition fails for a reason that waiting does not
// repair ([refusal.Permanent]: a wrong password, a missing right). It also returns an error when
// the client is closed ([refusal.ErrClosed]), or the namespace has been upgraded to a version that this
// program does not work with ([refusal.ErrNewer]). After the first sweep, Run treats a password or a
// right that it loses as an outage, and tries again.
func (r *Reaper) Run(ctx context.Context) error {
	if r == nil || r.of == nil {
		return refusal.Failed("reaper", "", refusal.Invalid("namespace", "is nil: use what queue.Open returned"))
	}
	if err := engine.Given(ctx); err != nil {
		return refusal.Failed("reaper", "", err)
	}
	ctx, cancel := context.WithCancelCause(engine.LogTo(ctx, r.config.Logger))
	defer cancel(nil)
	var failed error
	var once sync.Once
	var group sync.WaitGroup
	for p := range r.of.Engine().Partitions() {
		group.Go(func() {
			if err := r.watch(ctx, p); err != nil {
				once.Do(func() { failed = err })
				cancel(err)
			}
		})
	}
	group.Wait()
	return failed
}
