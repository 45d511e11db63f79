package inspect

import (
	"math"
	"slices"

	"github.com/curfew-dev/curfew/internal/engine"
)

// Histogram counts values in buckets. A figure has the same buckets for all kinds.
type Histogram struct {
	Buckets []float64 // upper bounds, inclusive
	Counts  []int64   // number of values in each bucket, not cumulative; the last is for values above all bounds
	Sum     float64   // sum of all values
}

// Count returns the number of values.
func (h Histogram) Count() int64 {
	var n int64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// The bounds of lua/store/figures.lua, in ms and in thousandths.
var (
	timeBounds = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000,
		600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000}
	lagBounds   = []int64{1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000}
	shareBounds = []int64{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}
)

func newHistogram(bounds []int64) Histogram {
	h := Histogram{Counts: make([]int64, len(bounds)+1)}
	for _, bound := range bounds {
		h.Buckets = append(h.Buckets, float64(bound)/1000)
	}
	return h
}

// add adds n to the counter that a field of a histogram names: a bound, more or sum.
func (h *Histogram) add(name string, n int64) {
	switch bound := engine.Number(name); {
	case name == "sum":
		h.Sum += float64(n) / 1000
	case name == "more":
		h.Counts[len(h.Buckets)] += n
	case bound > 0: // a bound of another version counts in the next larger bucket
		at, _ := slices.BinarySearch(h.Buckets, float64(bound)/1000)
		h.Counts[at] += n
	}
}

// Quantile returns an upper bound of a fraction of the values: the bound of the bucket that contains
// the value at the fraction. For example, Quantile(0.99) is at least as large as 99 of 100 values.
// It returns NaN if there are no values, and +Inf if the value is above all bounds.
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
