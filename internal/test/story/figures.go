package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/inspect"
)

// figures k: the figures of these kinds, or of all kinds: one line for each count, and
// one for each histogram, with the upper bounds of the buckets that have values.
func (s *stage) figures(w words) []string {
	all, err := inspect.Figures(s.ctx, s.q)
	var answers []string
	for _, f := range all {
		if len(w.plain) > 0 && !slices.Contains(w.plain, f.Kind) {
			continue
		}
		say := func(words ...any) {
			line := strings.Join(strings.Fields(fmt.Sprintln(words...)), " ") // without words that are empty
			answers = append(answers, f.Kind+" "+f.Queue+" "+line)
		}
		for _, e := range f.Enqueued {
			say("enqueued", e.Source, map[bool]string{false: "now", true: "later"}[e.Later], e.Count)
		}
		for _, e := range f.Ends {
			say(e.Status, e.Reason, e.TimeoutType, e.Policy, e.Count)
		}
		histogram := func(name string, h inspect.Histogram) {
			if h.Count() > 0 {
				say(name, filled(h), fmt.Sprintf("sum=%g", h.Sum))
			}
		}
		histogram("duration", f.Duration)
		histogram("timed", f.Timed)
		histogram("waiting", f.Waiting)
		for _, timeout := range slices.Sorted(maps.Keys(f.LagBy)) {
			histogram("lag "+string(timeout), f.LagBy[timeout])
		}
		histogram("share", f.Share)
		if f.AttemptTimeouts > 0 {
			say("attempt timeouts", f.AttemptTimeouts)
		}
		for _, policy := range slices.Sorted(maps.Keys(f.WaitTimeouts)) {
			say("wait timeouts", policy, f.WaitTimeouts[policy])
		}
		if f.Late > 0 {
			say("late", f.Late)
		}
		for _, w := range f.Wakeups {
			histogram(fmt.Sprintf("woken %s %s", w.Mode, w.Reason), w.Lag)
		}
	}
	if err != nil {
		answers = append(answers, refusal(err))
	}
	if len(answers) == 0 {
		return []string{"none"}
	}
	return answers
}

// filled formats the buckets that have values.
func filled(h inspect.Histogram) string {
	var words []string
	for i, n := range h.Counts {
		switch {
		case n > 0 && i < len(h.Buckets):
			words = append(words, fmt.Sprintf("%g:%d", h.Buckets[i], n))
		case n > 0:
			words = append(words, fmt.Sprintf("more:%d", n))
		}
	}
	return strings.Join(words, " ")
}
