package bench

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed counts.limits
var countLimits string

// Gate compares counts with the limits in counts.limits. It returns a line for each limit that
// is exceeded, or that has no figure in r.
func Gate(r Report) []string {
	var broken []string
	for line := range strings.Lines(countLimits) {
		line = strings.TrimSpace(line)
		name, limit, ok := strings.Cut(line, " <= ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		most, err := strconv.ParseFloat(limit, 64)
		f, known := r.find(name)
		switch {
		case err != nil || !known:
			broken = append(broken, fmt.Sprintf("counts.limits: %q is not a figure of this benchmark, or its limit is not a number", line))
		case f.Value > most:
			broken = append(broken, fmt.Sprintf("%s: %.4g %s, the limit is %.4g", name, f.Value, f.Unit, most))
		}
	}
	return broken
}
