package inspect_test

import (
	"math"
	"testing"

	"github.com/curfew-dev/curfew/inspect"
)

func TestAQuantileIsTheBoundOfItsBucket(t *testing.T) {
	bounds := []float64{1, 2, 5}
	for _, row := range []struct {
		counts   []int64
		fraction float64
		want     float64
	}{
		{[]int64{0, 0, 0, 0}, 0.5, math.NaN()},
		{[]int64{1, 0, 0, 0}, 0.5, 1},
		{[]int64{1, 0, 0, 0}, 0, 1},
		{[]int64{50, 50, 0, 0}, 0.5, 1},
		{[]int64{49, 51, 0, 0}, 0.5, 2},
		{[]int64{98, 1, 1, 0}, 0.99, 2},
		{[]int64{98, 1, 1, 0}, 1, 5},
		{[]int64{98, 0, 0, 2}, 0.99, math.Inf(1)},
		{[]int64{0, 0, 3, 0}, 0.01, 5},
	} {
		h := inspect.Histogram{Buckets: bounds, Counts: row.counts}
		if got := h.Quantile(row.fraction); got != row.want && !(math.IsNaN(got) && math.IsNaN(row.want)) {
			t.Errorf("Quantile(%v) of %v = %v, want %v", row.fraction, row.counts, got, row.want)
		}
	}
}

func TestHistogramsAddUp(t *testing.T) {
	a := inspect.Histogram{Buckets: []float64{1}, Counts: []int64{1, 2}, Sum: 3}
	b := inspect.Histogram{Buckets: []float64{1}, Counts: []int64{10, 20}, Sum: 30}
	if sum := a.Plus(b); sum.Counts[0] != 11 || sum.Counts[1] != 22 || sum.Sum != 33 || a.Counts[0] != 1 {
		t.Errorf("%v; %v", sum, a)
	}
}
