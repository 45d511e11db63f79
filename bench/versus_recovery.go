package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// RecoveryLoad adjusts RecoveryTrial. Holder must be set.
type RecoveryLoad struct {
	// Kills is how many worker processes are killed. The default is 10.
	Kills int
	// Within is how long to wait for the tasks after the last kill. A task that takes longer
	// counts as this, and is shown as "> 240". The default is 4 minutes.
	Within time.Duration
	// Holder returns the commands of the processes.
	Holder Holder
}

// RecoveryTrial measures how long a task waits when the process that runs it is killed (SIGKILL).
// The time ends when the task's handler begins in a worker of this process, which runs already.
// Each kill is at a random instant within the System's interval. Figures: recovery_min,
// recovery_p50, recovery_max.
func RecoveryTrial(l RecoveryLoad) Trial {
	l.Kills, l.Within = cmp.Or(l.Kills, 10), cmp.Or(l.Within, 4*time.Minute)
	can := func(s System) bool { _, ok := s.(Recoverer); return ok }
	t := Trial{bench: "recovery", unit: "s", runs: 1, load: count(l.Kills, "kill") + fmt.Sprintf(", waiting %v at the most", l.Within), bound: l.Within.Seconds(), sizes: Sizes{Kills: l.Kills}}
	t.turns = []turn{{
		figures: []figure{
			{"recovery_min", "kill -9 until its task runs elsewhere, min", can},
			{"recovery_p50", "kill -9 until its task runs elsewhere, p50", can},
			{"recovery_max", "kill -9 until its task runs elsewhere, max", can},
		},
		run: func(ctx context.Context, s System) ([]float64, error) {
			lags, err := standstill(ctx, s.(Recoverer), l)
			if err != nil {
				return nil, err
			}
			slices.Sort(lags)
			return []float64{lags[0].Seconds(), percentile(lags, 0.5).Seconds(), lags[len(lags)-1].Seconds()}, nil
		},
	}}
	return t.complete()
}
