package flow

import (
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// budget bounds the work of one Read: the number of nodes of the run and its parts, and the time of
// computation.
type budget struct {
	nodes int           // of the runs and parts that were read
	spent time.Duration // time of computation, without the waits for records
	since time.Time     // start of the present computation

	maxNodes int
	longest  time.Duration
}

func newBudget() *budget { return &budget{maxNodes: 100_000, longest: 10 * time.Second} }

// begin counts time from now on, until stop is called.
func (b *budget) begin() { b.since = time.Now() }

func (b *budget) stop() { b.spent += time.Since(b.since) }

// check returns an error if the budget is used up. more is the number of nodes in the replay under
// way.
func (b *budget) check(run string, more int) error {
	switch {
	case b.nodes+more > b.maxNodes:
		return refusal.Invalid("run", "%s has more than %d nodes with those of its parts, the limit of what is read: list its tasks by `curfew ls --agent`", run, b.maxNodes)
	case b.spent+time.Since(b.since) > b.longest:
		return refusal.Invalid("run", "%s cannot be read: computing what its nodes did takes more than %v: list its tasks by `curfew ls --agent`", run, b.longest)
	}
	return nil
}
