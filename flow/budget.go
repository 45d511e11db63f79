package flow

import (
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// budget bounds what one Read does: how many nodes it reads, of the run and of its parts in sum, and how long it computes.
type budget struct {
	nodes int           // of the runs and parts that it has read
	spent time.Duration // without the time in which it waited for records
	since time.Time     // when it began to compute after that

	most    int
	longest time.Duration
}

func newBudget() *budget { return &budget{most: 100_000, longest: 10 * time.Second} }

// begin counts time from now on, until stop is called.
func (b *budget) begin() { b.since = time.Now() }

func (b *budget) stop() { b.spent += time.Since(b.since) }

// check returns an error if the budget is used up. more is how many nodes the replay of a run has, which is not over yet.
func (b *budget) check(run string, more int) error {
	switch {
	case b.nodes+more > b.most:
		return refusal.Invalid("run", "%s has more than %d nodes with those of its parts, the limit of what is read: list its tasks by `curfew ls --agent`", run, b.most)
	case b.spent+time.Since(b.since) > b.longest:
		return refusal.Invalid("run", "%s cannot be read: computing what its nodes did takes more than %v: list its tasks by `curfew ls --agent`", run, b.longest)
	}
	return nil
}
