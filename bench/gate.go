package bench

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

// timeTolerance is the factor by which a time can exceed its limit. On one machine times differ
// by up to a tenth from run to run, and machines differ more.
const timeTolerance = 1.3

var (
	//go:embed counts.limits
	countLimits string
	//go:embed micro.limits
	timeLimits string
)

// Gate compares counts with the limits in counts.limits. It returns a line for each limit that
// is exceeded, or that has no figure in r.
func Gate(r Report) []string { return r.gate("counts.limits", countLimits, " <= ", 1) }

// GateTimes compares times with the limits in micro.limits. It returns a line for each limit that
// a time exceeds by more than 30 %, or that has no figure in r.
func GateTimes(r Report) []string { return r.gate("micro.limits", timeLimits, " = ", timeTolerance) }

// gate compares figures with limits, which are lines of a file: the name of a figure, the separator
// and a number. A figure can be tolerance times as large.
func (r Report) gate(file, limits, separator string, tolerance float64) []string {
	over := ""
	if tolerance > 1 {
		over = fmt.Sprintf(" plus %.0f %%: see `curfew-bench micro`", (tolerance-1)*100)
	}
	var broken []string
	for line := range strings.Lines(limits) {
		line = strings.TrimSpace(line)
		name, limit, ok := strings.Cut(line, separator)
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		most, err := strconv.ParseFloat(limit, 64)
		f, known := r.find(name)
		switch {
		case err != nil || !known:
			broken = append(broken, fmt.Sprintf("%s: %q is not a figure of this benchmark, or its limit is not a number", file, line))
		case f.Value > most*tolerance:
			broken = append(broken, fmt.Sprintf("%s: %.4g %s, the limit is %.4g%s", name, f.Value, f.Unit, most, over))
		}
	}
	return broken
}
