package bench

import (
	"slices"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, row := range []struct {
		claim  string
		values []float64
		want   Spread
	}{
		{"no values have a zero spread", nil, Spread{}},
		{"one value is median, least and most", []float64{7}, Spread{7, 7, 7}},
		{"the median is the value in the middle, in any order", []float64{9, 1, 2}, Spread{2, 1, 9}},
		{"the median of an even number is the mean of the two in the middle", []float64{4, 1, 2, 100}, Spread{3, 1, 100}},
	} {
		if got := spread(row.values); got != row.want {
			t.Errorf("%s: spread(%v) = %v, want %v", row.claim, row.values, got, row.want)
		}
	}
	values := []float64{3, 1, 2}
	if spread(values); !slices.Equal(values, []float64{3, 1, 2}) {
		t.Errorf("spread changed the order of its values to %v", values)
	}
}

func TestRatiosAreOfRunsSideBySide(t *testing.T) {
	for _, row := range []struct {
		claim      string
		a, b, want []float64
	}{
		{"runs are divided one by one", []float64{10, 30}, []float64{5, 10}, []float64{2, 3}},
		{"a run of zero is left out", []float64{10, 30}, []float64{0, 10}, []float64{3}},
		{"a run without a partner is left out", []float64{10, 30}, []float64{5}, []float64{2}},
	} {
		if got := ratios(row.a, row.b); !slices.Equal(got, row.want) {
			t.Errorf("%s: ratios(%v, %v) = %v, want %v", row.claim, row.a, row.b, got, row.want)
		}
	}
}

func TestDigitsAreThreeOrWhole(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.12345: "0.123", 15.678: "15.7", 999.4: "999", 21345.6: "21346"} {
		if got := Digits(v); got != want {
			t.Errorf("Digits(%v) = %s, want %s", v, got, want)
		}
	}
}
