package bench

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// timeTolerance is the factor by which a time can exceed its limit. On one machine times differ
// by up to a tenth from run to run, and machines differ more.
const timeTolerance = 1.3

//go:embed micro.limits
var timeLimits string

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
		out.add(c.Name()+": CPU", c.Ratio.Median, "× reference")
		out.add(c.Name()+": median", c.MedianRatio.Median, "× reference")
	}
	return out
}

// lowest returns each figure of b with the lower of its values in a and b.
func lowest(a, b Report) Report {
	out := Report{Bench: b.Bench}
	for _, f := range b.Figures {
		if value, _, ok := a.find(f.Name); ok {
			f.Value = min(f.Value, value)
		}
		out.Figures = append(out.Figures, f)
	}
	return out
}

// GateTimes compares times with the limits in micro.limits. It returns a line for each limit that
// a time exceeds by more than 30 %, or that has no figure in r.
func GateTimes(r Report) []string { return gateTimes(r, timeLimits) }

func gateTimes(r Report, limits string) []string {
	var broken []string
	for line := range strings.Lines(limits) {
		name, limit, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		usual, err := strconv.ParseFloat(limit, 64)
		value, _, known := r.find(name)
		switch {
		case err != nil || !known:
			broken = append(broken, fmt.Sprintf("micro.limits: %q is not a figure of this benchmark, or its limit is not a number", strings.TrimSpace(line)))
		case value > usual*timeTolerance:
			broken = append(broken, fmt.Sprintf("%s is %s loops of the reference script, the limit is %s plus %.0f %%: see `curfew bench micro`",
				name, Digits(value), Digits(usual), (timeTolerance-1)*100))
		}
	}
	return broken
}
