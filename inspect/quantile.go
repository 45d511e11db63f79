package inspect

import "math"

// Quantile returns an upper bound of a fraction of the values: that of the bucket in which the value at the
// fraction is. Quantile(0.99) is at least as large as 99 of 100 values. It returns NaN if there are no values, and
// +Inf if the value is above all bounds.
func (h Histogram) Quantile(fraction float64) float64 {
	n := h.Count()
	if n == 0 {
		return math.NaN()
	}
	rank := max(int64(math.Ceil(fraction*float64(n))), 1)
	for i, c := range h.Counts {
		if rank -= c; rank <= 0 && i < len(h.Buckets) {
			return h.Buckets[i]
		}
	}
	return math.Inf(1)
}

// Plus returns the counts of two histograms with the same buckets.
func (h Histogram) Plus(other Histogram) Histogram {
	sum := Histogram{Buckets: h.Buckets, Counts: make([]int64, len(h.Counts)), Sum: h.Sum + other.Sum}
	copy(sum.Counts, h.Counts)
	for i, c := range other.Counts {
		sum.Counts[i] += c
	}
	return sum
}
