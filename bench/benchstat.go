package bench

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteBenchstat writes each figure of each run as a line that golang.org/x/perf/cmd/benchstat reads. benchstat says whether the
// runs of two files differ by more than chance.
func WriteBenchstat(out io.Writer, runs ...Report) error {
	w := newBenchstat(out, runs[0].Redis)
	for _, r := range runs {
		for _, f := range r.Figures {
			w.line(r.Bench, f.Name, f.Value, f.Unit)
		}
	}
	return w.Flush()
}

// WriteBenchstat writes the runs of each System for benchstat. Its flag -col /system shows the Systems side by side.
func (c Comparison) WriteBenchstat(out io.Writer) error {
	w := newBenchstat(out, c.Redis, fmt.Sprint("aof: ", c.AOF))
	trial, _, _ := strings.Cut(c.Bench, " ")
	for _, r := range c.Rows {
		for _, s := range c.Systems {
			for _, value := range r.runs[s] {
				w.line(trial, r.Name+"/system="+s, value, r.Unit)
			}
		}
	}
	return w.Flush()
}

// benchstat writes the text format of Go benchmarks, golang.org/design/14313-benchmark-format.
type benchstat struct{ *bufio.Writer }

func newBenchstat(out io.Writer, redis string, settings ...string) benchstat {
	w := benchstat{bufio.NewWriter(out)}
	if redis != "" {
		settings = append([]string{"redis: " + redis}, settings...)
	}
	for _, setting := range settings {
		fmt.Fprintln(w, setting)
	}
	fmt.Fprintln(w, "Unit "+perSecond+" better=higher")
	return w
}

// line writes a figure. A name or a unit has no spaces.
func (w benchstat) line(trial, name string, value float64, unit string) {
	if unit == "" {
		unit = "count"
	}
	words := []any{"Benchmark" + strings.ToUpper(trial[:1]) + trial[1:] + "/" + strings.ReplaceAll(name, " ", "_"), 1, value, strings.ReplaceAll(unit, " ", "_")}
	fmt.Fprintln(w, words...)
}
