// Package reaper ends what is out of time: it calls the sweep of every partition
// when something falls due there, starts what was delayed, gives back what dead
// workers held, and removes records whose retention is over.
//
// A reaper is an alarm clock and not a poll. Each sweep says how long nothing is
// due, and Redis rings when something sooner came in meanwhile; a ring that is lost
// costs at most the fall-back. Any number of reapers may run, anywhere: a sweep is
// one script, so one that is killed loses nothing, and only the one that holds a
// partition's turn is precise, so that many cost what one does. Correctness does
// not depend on any of them: what is late is refused by every script.
package reaper

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Config adjusts a Reaper. The zero value is ready to use.
type Config struct {
	// Batch is the most tasks of a clock that one call ends, up to 250. Defaults to 100, and to
	// 250 as long as more than that is due.
	Batch int
	// Fallback is the longest that the reaper rests between two looks. Defaults to
	// 500 ms.
	Fallback time.Duration
	// Name begins the name that the reaper has in Redis. Defaults to the host's.
	Name string
	// Logger defaults to the queue's.
	Logger *slog.Logger
	// Observe is told of each sweep, if it is set. It is called from a goroutine a
	// partition and holds it up.
	Observe func(partition int, swept Swept)
}

// Reaper sweeps the partitions of a namespace.
type Reaper struct {
	of     Namespace
	config Config
	crowd  int // the batch as long as more is due than one call ends
	name   string
}

// New makes a reaper. It does nothing before Run, which refuses a namespace that is nil.
func New(of Namespace, config Config) *Reaper {
	if engine.IsNil(of) {
		return &Reaper{}
	}
	crowd := config.Batch
	if config.Batch <= 0 {
		config.Batch, crowd = 100, 250
	}
	if config.Fallback <= 0 {
		config.Fallback = 500 * time.Millisecond
	}
	if config.Logger == nil {
		config.Logger = of.Engine().Logger()
	}
	if config.Observe == nil {
		config.Observe = func(int, Swept) {}
	}
	return &Reaper{of: of, config: config, crowd: crowd, name: newName(config.Name)}
}

// newName is unique for each reaper, since the turn is held by name.
func newName(prefix string) string {
	if prefix == "" {
		prefix, _ = os.Hostname()
	}
	return prefix + "-" + strconv.Itoa(os.Getpid()) + "-" + strings.ToLower(rand.Text()[:8])
}

// Run sweeps until ctx ends, and returns nil then; no goroutine is left behind. It
// outlives any outage of Redis, and is back within about a second of its return.
//
// It returns an error if its first sweep fails for a reason that waiting does not mend
// ([refusal.Permanent]: a password, a right), and whenever the client is closed ([refusal.ErrClosed]).
// Once it has swept it takes a right or a password that it loses for an outage.
func (r *Reaper) Run(ctx context.Context) error {
	if r == nil || r.of == nil {
		return refusal.Failed("reaper", "", refusal.Invalid("namespace", "is nil: use what queue.Open returned"))
	}
	if err := engine.Given(ctx); err != nil {
		return refusal.Failed("reaper", "", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
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
