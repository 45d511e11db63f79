// Package reaper ends the tasks whose time is up. A reaper sweeps each partition when something is
// due there. The sweep also puts delayed tasks in line, gives back the tasks of dead workers, and
// removes records whose retention is over.
//
// A reaper works like an alarm clock and does not poll. Each sweep returns the time until the next
// task is due. If a task becomes due earlier, Redis sends an alarm; a lost alarm costs at most
// Config.Fallback.
//
// Any number of reapers can run, on any host. A sweep is one script, so a reaper that is killed
// loses nothing. Only the reaper that has a partition's turn sweeps exactly when something is due,
// so that many reapers cost little more than one. Correctness does not depend on reapers, because
// every call that writes ends a late task before it uses it.
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
	// Batch is the greatest number of entries of each clock that one sweep handles, up to 250.
	// Defaults to 100 for the first sweep, and to 250 for the next sweeps while more tasks are due.
	Batch int
	// Fallback is the longest time between two sweeps of the reaper that has the turn, at least 1
	// ms. Defaults to 500 ms. A reaper without the turn waits up to 60 times as long.
	Fallback time.Duration
	// Name is a prefix of the reaper's name in Redis. Defaults to the name of the host. A character
	// other than a letter, a digit, or one of . _ - becomes _.
	Name string
	// Logger defaults to the queue's.
	Logger *slog.Logger
	// Observe, if set, is called after each sweep that succeeded. Each partition calls it from its
	// own goroutine, and sweeps again only after Observe has returned.
	Observe func(partition int, swept Swept)
}

// Reaper sweeps the partitions of a namespace.
type Reaper struct {
	ns     Namespace
	config Config
	crowd  int // the batch while more tasks are due than one sweep handles
	name   string
}

// New returns a reaper. It does nothing before Run. If the namespace is nil, Run returns an error.
func New(ns Namespace, config Config) *Reaper {
	if engine.IsNil(ns) {
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
		config.Logger = ns.Engine().Logger()
	}
	if config.Observe == nil {
		config.Observe = func(int, Swept) {}
	}
	if config.Name == "" {
		config.Name, _ = os.Hostname()
	}
	// The name must be unique, because a reaper holds the turn by its name.
	return &Reaper{ns: ns, config: config, crowd: crowd, name: names.OfProcess(config.Name)}
}

// Run sweeps until ctx ends, and then returns nil. It leaves no goroutine behind. If Redis is
// unreachable, Run continues to try, and sweeps again about a second after Redis is back.
//
// Run returns an error if the first sweep of a partition fails and waiting does not repair the cause
// ([refusal.Permanent], for example a wrong password or a missing right). It also returns an error
// when the client is closed ([refusal.ErrClosed]), or the namespace has been upgraded to a version
// that this program does not work with ([refusal.ErrNewer]). After the first sweep, Run treats the
// loss of a password or a right as an outage, and tries again.
func (r *Reaper) Run(ctx context.Context) error {
	if r == nil || r.ns == nil {
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
	for p := range r.ns.Engine().Partitions() {
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
