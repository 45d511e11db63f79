package bench

import (
	"fmt"
	"slices"
)

// Spread summarises the values of several runs.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spread returns the spread of some values, or a zero Spread for no values. The median of an even
// number of values is the mean of the two in the middle.
func spread(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		Min:    sorted[0],
		Max:    sorted[n-1],
	}
}

// ratios divides the first run of a by the first of b, the second by the second, and so on. Runs
// side by side see the same noise from the machine, so their ratios vary less than the ratio of
// two medians.
func ratios(a, b []float64) []float64 {
	out := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

// text prints a spread as "median (min-max)".
func (s Spread) text(digits func(float64) string) string {
	return fmt.Sprintf("%s (%s-%s)", digits(s.Median), digits(s.Min), digits(s.Max))
}

// Digits formats a figure with three significant digits, or without a fraction from 1000 on.
func Digits(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
