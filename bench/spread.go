package bench

import (
	"fmt"
	"slices"
)

// Spread is what several runs measured: the median, and the least and the most.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spread returns the spread of some values, and a zero Spread of none. The median of an
// even number of values is the mean of the two in the middle.
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

// ratios divides one by one: the first run of a by the first of b, and so on. Runs that
// stand side by side had the same noise from the machine, so their ratio is steadier
// than that of two medians.
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

// Digits prints a figure with as many digits as say something.
func Digits(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
