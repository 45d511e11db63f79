package lines

import (
	"cmp"
	"slices"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// Activity holds the figures of a kind or queue, without the counts of how its tasks ended.
type Activity struct {
	AttemptTimeouts int64      `json:"attempt_timeouts"` // attempts that took too long and were followed by another one
	LateOutcomes    int64      `json:"late_outcomes"`    // outcomes that workers reported after the task had timed out
	Timeouts        []Timeouts `json:"timeouts"`
	Wakeups         []Wakeups  `json:"wakeups"`
	WaitP50         *int64     `json:"wait_p50_ms"`
	WaitP99         *int64     `json:"wait_p99_ms"`
	LagP50          *int64     `json:"lag_p50_ms"`
	LagP99          *int64     `json:"lag_p99_ms"`

	Waiting, Lag, WakeLag inspect.Histogram `json:"-"`
}

// Timeouts counts the tasks that timed out by the same limit, with the same policy.
type Timeouts struct {
	Type   queue.TimeoutType `json:"timeout_type"`
	Policy string            `json:"policy_applied"` // "" if an older version counted them
	Count  int64             `json:"count"`
}

// Wakeups counts the agents that were woken from waits of the same mode, for the same reason.
type Wakeups struct {
	Mode   queue.Mode `json:"wait_mode"`
	Reason string     `json:"reason"`
	Count  int64      `json:"count"`
}

// OfFigures adds up figures.
func OfFigures(figures []inspect.KindFigures) Activity {
	a := Activity{Timeouts: []Timeouts{}, Wakeups: []Wakeups{}}
	timeouts, wakeups := map[Timeouts]int64{}, map[Wakeups]int64{}
	for _, f := range figures {
		a.AttemptTimeouts += f.AttemptTimeouts
		a.LateOutcomes += f.Late
		a.Waiting, a.Lag = f.Waiting.Plus(a.Waiting), f.Lag.Plus(a.Lag)
		for _, e := range f.Ends {
			if e.Reason == queue.ReasonTimeout {
				timeouts[Timeouts{Type: e.TimeoutType, Policy: e.Policy}] += e.Count
			}
		}
		for _, w := range f.Wakeups {
			wakeups[Wakeups{Mode: w.Mode, Reason: w.Reason}] += w.Lag.Count()
			a.WakeLag = w.Lag.Plus(a.WakeLag)
		}
	}
	for timeout, n := range timeouts {
		timeout.Count = n
		a.Timeouts = append(a.Timeouts, timeout)
	}
	for wakeup, n := range wakeups {
		wakeup.Count = n
		a.Wakeups = append(a.Wakeups, wakeup)
	}
	slices.SortFunc(a.Timeouts, func(a, b Timeouts) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Policy, b.Policy)) })
	slices.SortFunc(a.Wakeups, func(a, b Wakeups) int { return cmp.Or(cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Reason, b.Reason)) })
	a.WaitP50, a.WaitP99, a.LagP50, a.LagP99 = Bound(a.Waiting, 0.5), Bound(a.Waiting, 0.99), Bound(a.Lag, 0.5), Bound(a.Lag, 0.99)
	return a
}

// ByQueue returns the figures of each queue.
func ByQueue(figures []inspect.KindFigures) map[string][]inspect.KindFigures {
	queues := map[string][]inspect.KindFigures{}
	for _, f := range figures {
		queues[f.Queue] = append(queues[f.Queue], f)
	}
	return queues
}
