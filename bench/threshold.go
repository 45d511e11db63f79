package bench

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Threshold is a limit for a figure of the first System, or for its ratios.
type Threshold struct {
	text    string
	figure  string
	atLeast bool
	ratio   bool    // to each other System except the floor
	limit   float64 // in the unit of the figure
}

var thresholdForm = regexp.MustCompile(`^\s*([a-z0-9_]+)\s*(>=|<=)\s*([0-9.]+)\s*([a-zµ]*)\s*$`)

// ParseThreshold parses a limit for a figure of a trial, for example drain>=50000, dispatch_p50<=10ms,
// recovery_max<=20s or enqueue_16>=1.2x, which is 1.2 times better than each other System except the floor. Its error
// explains the syntax. systems are the systems of the Compare call: a ratio is an error if one of them never does its
// figure.
func ParseThreshold(text string, t Trial, systems ...System) (Threshold, error) {
	parts := thresholdForm.FindStringSubmatch(text)
	if parts == nil {
		return Threshold{}, fmt.Errorf("%q is not a figure, >= or <=, and a limit: write %s", text, t.examples())
	}
	h := Threshold{text: strings.TrimSpace(text), figure: parts[1], atLeast: parts[2] == ">=", ratio: parts[4] == "x"}
	i := slices.IndexFunc(t.figures, func(f figure) bool { return f.name == h.figure })
	if i < 0 {
		return Threshold{}, fmt.Errorf("%q is not a figure of bench %s: write %s", h.figure, t.bench, t.examples())
	}
	limit, err := t.limit(parts[3], parts[4])
	if err != nil {
		return Threshold{}, fmt.Errorf("the limit %q of %s is not a %s: write %s", parts[3]+parts[4], h.figure, t.measure(), t.examples())
	}
	if h.limit = limit; h.ratio {
		err = h.refuseNever(t.figures[i], systems)
	}
	return h, err
}

// limit parses a number in the unit of the trial, or a ratio.
func (t Trial) limit(number, unit string) (float64, error) {
	if unit == "x" || unit == "" && t.unit == perSecond {
		v, err := strconv.ParseFloat(number, 64)
		if math.IsInf(v, 0) {
			err = strconv.ErrRange
		}
		return v, err
	}
	if t.unit == perSecond {
		return 0, strconv.ErrSyntax
	}
	d, err := time.ParseDuration(number + unit)
	if t.unit == "s" {
		return d.Seconds(), err
	}
	return d.Seconds() * 1000, err
}

// measure lists the valid forms of a limit, for error texts.
func (t Trial) measure() string {
	if t.less() {
		return "duration or ratio"
	}
	return "number or ratio"
}

// examples returns example limits of the trial and its figure names, for error texts.
func (t Trial) examples() string {
	var names []string
	for _, f := range t.figures {
		names = append(names, f.name)
	}
	first, last := names[0], names[len(names)-1]
	absolute := last + "<=20" + t.unit
	if !t.less() {
		absolute = last + ">=50000"
	}
	if t.bench == "detect" { // its first figures have no ratio to asynq
		first = last
	}
	return fmt.Sprintf("%s, or %s>=1.2x for a ratio; the figures are %s", absolute, first, strings.Join(names, ", "))
}

// refuseNever returns an error if a System never does the figure of the ratio.
func (h Threshold) refuseNever(f figure, systems []System) error {
	for _, s := range systems {
		if s.Name() != floorName && !f.fits(s) {
			return fmt.Errorf("%s has no ratio, because %s never does this: write a limit without x", f.name, s.Name())
		}
	}
	return nil
}

// Missed returns a line for each threshold that the comparison misses, with the measured value.
func (c Comparison) Missed(thresholds []Threshold) []string {
	var lines []string
	for _, h := range thresholds {
		i := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Name == h.figure })
		if i < 0 {
			lines = append(lines, fmt.Sprintf("%s: the comparison has no such figure", h.text))
			continue
		}
		lines = append(lines, h.missed(c.Rows[i], c.Systems)...)
	}
	return lines
}

func (h Threshold) missed(r Row, systems []string) (lines []string) {
	ours := r.Of[systems[0]].Median
	beyond := r.Bound > 0 && ours >= r.Bound // then the true value is larger, and the true ratio smaller
	if !h.ratio {
		if !h.holds(ours) || beyond && !h.atLeast {
			lines = append(lines, fmt.Sprintf("missed: %s is %s %s, and the limit is %s", r.Name, r.digits(ours), r.Unit, h.text))
		}
		return lines
	}
	for _, name := range systems[1:] {
		times := r.Ratios[name].Median
		if name != floorName && (!h.holds(times) || beyond && h.atLeast) {
			lines = append(lines, fmt.Sprintf("missed: %s is %s times as good as that of %s, and the limit is %s", r.Name, hundredths(times), name, h.text))
		}
	}
	return lines
}

func (h Threshold) holds(value float64) bool {
	if h.atLeast {
		return value >= h.limit
	}
	return value <= h.limit
}
