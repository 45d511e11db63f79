package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/inspect"
)

// figures k: the figures of these kinds, or of all kinds: one line for each way to end, and
// one for each histogram, with the upper bounds of the buckets that have values.
func (s *stage) figures(w words) []string {
	all, err := inspect.Figures(s.ctx, s.q)
	var answers []string
	for _, f := range all {
		if len(w.plain) > 0 && !slices.Contains(w.plain, f.Kind) {
			continue
		}
		for _, e := range f.Ends {
			answers = append(answers, fmt.Sprintf("%s %s %s %d", f.Kind, f.Queue, strings.Join(strings.Fields(fmt.Sprint(e.Status, " ", e.Reason, " ", e.TimeoutType)), " "), e.Count))
		}
		for _, h := range []struct {
			name string
			of   inspect.Histogram
		}{{"duration", f.Duration}, {"waiting", f.Waiting}, {"lag", f.Lag}, {"share", f.Share}} {
			if h.of.Count() > 0 {
				answers = append(answers, fmt.Sprintf("%s %s %s %s sum=%g", f.Kind, f.Queue, h.name, filled(h.of), h.of.Sum))
			}
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
