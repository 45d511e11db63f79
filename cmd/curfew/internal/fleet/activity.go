package fleet

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
)

// factsOf returns pairs of a name and a value. What has not happened has no value, so it is not printed.
func factsOf(a lines.Activity) []string {
	return []string{
		"timeouts", words(a.Timeouts, func(t lines.Timeouts) string {
			return number(t.Count) + " " + string(t.Type) + " " + cmp.Or(t.Policy, "-")
		}),
		"attempt timeouts", number(a.AttemptTimeouts),
		"late outcomes", number(a.LateOutcomes),
		"agents woken", words(a.Wakeups, func(w lines.Wakeups) string { return number(w.Count) + " " + string(w.Mode) + " " + w.Reason }),
		"in line before", bounds(a.Waiting),
		"lag of timeouts", bounds(a.Lag),
		"lag of wake-ups", bounds(a.WakeLag),
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
	var lines []string
	for _, line := range list {
		lines = append(lines, word(line))
	}
	return strings.Join(lines, ", ")
}

// bounds returns upper bounds of the values in words, "" if there are none.
func bounds(h inspect.Histogram) string {
	if h.Count() == 0 {
		return ""
	}
	return fmt.Sprintf("p50 %s, p99 %s", boundText(h, 0.5), boundText(h, 0.99))
}
