package bench

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Times measures the figures that GateTimes checks, in loops of the reference script. If one is
// above its limit, all are measured again, at most twice, and the least value of each counts:
// other programs on the machine make calls slower and never faster.
func Times(ctx context.Context, rdb redis.UniversalClient) (Report, error) {
	var least Report
	for range 3 {
		m, err := Micro(ctx, rdb, MicroConfig{Tasks: 2000})
		if err != nil {
			return least, err
		}
		if least = lowest(least, m.times()); len(GateTimes(least)) == 0 {
			break
		}
	}
	return least, nil
}

// times returns the ratios of a measurement, under the names in micro.limits.
func (r MicroReport) times() Report {
	out := Report{Bench: r.Bench}
	for _, c := range r.Costs {
		out.add(c.Name()+": CPU", c.Ratio.Median, "loops of the reference script")
		unit := "loops of the reference script"
		if small(c.Per, c.Batch) {
			unit = "calls of the reference script"
		}
		out.add(c.Name()+": median", c.MedianRatio.Median, unit)
	}
	return out
}

// lowest returns each figure of b with the lower of its values in a and b.
func lowest(a, b Report) Report {
	out := Report{Bench: b.Bench}
	for _, f := range b.Figures {
		if other, known := a.find(f.Name); known {
			f.Value = min(f.Value, other.Value)
		}
		out.Figures = append(out.Figures, f)
	}
	return out
}
