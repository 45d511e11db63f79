package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// activity is what the figures of a kind or a queue say beyond how its tasks ended.
type activity struct {
	AttemptTimeouts int64      `json:"attempt_timeouts"` // attempts that took too long and were followed by another one
	LateOutcomes    int64      `json:"late_outcomes"`    // outcomes that workers reported after the task had timed out
	Timeouts        []timeouts `json:"timeouts"`
	Wakeups         []wakeups  `json:"wakeups"`
	WaitP50         *int64     `json:"wait_p50_ms"`
	WaitP99         *int64     `json:"wait_p99_ms"`
	LagP50          *int64     `json:"lag_p50_ms"`
	LagP99          *int64     `json:"lag_p99_ms"`

	waiting, lag, wakeLag inspect.Histogram
}

// timeouts counts the tasks that timed out by the same limit, with the same policy.
type timeouts struct {
	Type   queue.TimeoutType `json:"timeout_type"`
	Policy string            `json:"policy_applied"` // "" if an older version counted them
	Count  int64             `json:"count"`
}

// wakeups counts the agents that were woken from waits of the same mode, for the same reason.
type wakeups struct {
	Mode   queue.Mode `json:"wait_mode"`
	Reason string     `json:"reason"`
	Count  int64      `json:"count"`
}

// activityOf adds up figures.
func activityOf(figures []inspect.KindFigures) activity {
	a := activity{Timeouts: []timeouts{}, Wakeups: []wakeups{}}
	ended, woken := map[timeouts]int64{}, map[wakeups]int64{}
	for _, f := range figures {
		a.AttemptTimeouts += f.AttemptTimeouts
		a.LateOutcomes += f.Late
		a.waiting, a.lag = f.Waiting.Plus(a.waiting), f.Lag.Plus(a.lag)
		for _, e := range f.Ends {
			if e.Reason == queue.ReasonTimeout {
				ended[timeouts{Type: e.TimeoutType, Policy: e.Policy}] += e.Count
			}
		}
		for _, w := range f.Wakeups {
			woken[wakeups{Mode: w.Mode, Reason: w.Reason}] += w.Lag.Count()
			a.wakeLag = w.Lag.Plus(a.wakeLag)
		}
	}
	for one, n := range ended {
		one.Count = n
		a.Timeouts = append(a.Timeouts, one)
	}
	for one, n := range woken {
		one.Count = n
		a.Wakeups = append(a.Wakeups, one)
	}
	slices.SortFunc(a.Timeouts, func(a, b timeouts) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Policy, b.Policy)) })
	slices.SortFunc(a.Wakeups, func(a, b wakeups) int { return cmp.Or(cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Reason, b.Reason)) })
	a.WaitP50, a.WaitP99, a.LagP50, a.LagP99 = bound(a.waiting, 0.5), bound(a.waiting, 0.99), bound(a.lag, 0.5), bound(a.lag, 0.99)
	return a
}

// facts returns pairs of a name and a value. What has not happened has no value, so it is not printed.
func (a activity) facts() []string {
	return []string{
		"timeouts", words(a.Timeouts, func(t timeouts) string { return number(t.Count) + " " + string(t.Type) + " " + cmp.Or(t.Policy, "-") }),
		"attempt timeouts", number(a.AttemptTimeouts),
		"late outcomes", number(a.LateOutcomes),
		"agents woken", words(a.Wakeups, func(w wakeups) string { return number(w.Count) + " " + string(w.Mode) + " " + w.Reason }),
		"in line before", bounds(a.waiting),
		"lag of timeouts", bounds(a.lag),
		"lag of wake-ups", bounds(a.wakeLag),
	}
}

// number returns a number in words, "" for 0.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return app.Grouped(n)
}

func words[T any](list []T, word func(T) string) string {
	var all []string
	for _, one := range list {
		all = append(all, word(one))
	}
	return strings.Join(all, ", ")
}

// bounds returns upper bounds of the values in words, "" if there are none.
func bounds(h inspect.Histogram) string {
	if h.Count() == 0 {
		return ""
	}
	return fmt.Sprintf("p50 %s, p99 %s", boundText(h, 0.5), boundText(h, 0.99))
}

// byQueue returns the figures of each queue.
func byQueue(figures []inspect.KindFigures) map[string][]inspect.KindFigures {
	all := map[string][]inspect.KindFigures{}
	for _, f := range figures {
		all[f.Queue] = append(all[f.Queue], f)
	}
	return all
}
