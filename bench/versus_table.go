package bench

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"text/tabwriter"
)

// compare makes a Comparison of the measured values.
func compare(t Trial, runs int, systems []System, all samples) Comparison {
	out := Comparison{Bench: t.bench, Runs: runs, Sizes: t.sizes, load: t.load}
	var against []string
	for _, s := range systems {
		out.Systems = append(out.Systems, s.Name())
	}
	for _, s := range systems[1:] {
		if s.Name() != floorName {
			out.Bench += " --vs " + s.Name()
			against = append(against, strings.TrimSpace(s.Name()+" "+s.Version()))
		}
	}
	out.Against = strings.Join(against, ", ")
	for _, f := range t.figures {
		out.Rows = append(out.Rows, t.row(f, systems, all))
	}
	return out
}

// row returns the row of one figure.
func (t Trial) row(f figure, systems []System, all samples) Row {
	row := Row{Name: f.name, What: f.what, Unit: t.unit, Bound: t.bound, systems: systems, Of: map[string]Spread{}, Ratios: map[string]Spread{}}
	ours := all[sampled{f.name, systems[0].Name()}]
	for i, s := range systems {
		if !f.fits(s) {
			continue
		}
		theirs := all[sampled{f.name, s.Name()}]
		row.Of[s.Name()] = spread(theirs)
		if i == 0 || !f.fits(systems[0]) {
			continue
		}
		better := ratios(ours, theirs)
		if t.less() {
			better = ratios(theirs, ours)
		}
		row.Ratios[s.Name()] = spread(better)
	}
	return row
}

// WriteTable writes the comparison as a table for people: medians, with the least and the most.
func (c Comparison) WriteTable(out io.Writer) error {
	persistence := "no append-only file"
	if c.AOF {
		persistence = "with its append-only file"
	}
	fmt.Fprintf(out, "%s, median (min-max) of %s of %s; %s, redis %s, %s\n", c.Rows[0].Unit, count(c.Runs, "run"), c.load, c.Against, c.Redis, persistence)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\t"+strings.Join(c.header(), "\t"))
	for _, r := range c.Rows {
		fmt.Fprintln(table, r.What+"\t"+strings.Join(r.cells(), "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return c.writeNotes(out)
}

// header returns the titles of the columns: the first System, another, the ratio to it, and so on.
func (c Comparison) header() []string {
	first := c.Systems[0]
	columns := []string{first}
	for _, name := range c.Systems[1:] {
		if name == floorName {
			columns = append(columns, "bare script", first+" : bare")
		} else {
			columns = append(columns, name, first+" : "+name)
		}
	}
	return columns
}

// cells returns the columns of the row. The floor has medians only.
func (r Row) cells() []string {
	var cells []string
	for i, s := range r.systems {
		of, ratio := r.cell(s.Name())
		if cells = append(cells, of); i > 0 {
			cells = append(cells, ratio)
		}
	}
	return cells
}

func (r Row) cell(system string) (of, ratio string) {
	spread, does := r.Of[system]
	if !does {
		return "never", "-"
	}
	times, can := r.Ratios[system]
	ratio = "-"
	if system == floorName {
		if can {
			ratio = hundredths(times.Median)
		}
		return r.digits(spread.Median), ratio
	}
	if can {
		ratio = times.text(hundredths)
	}
	return spread.text(r.digits), ratio
}

// digits formats a value. A value that reaches the bound is shown as longer.
func (r Row) digits(v float64) string {
	if r.Bound > 0 && v >= r.Bound {
		return "> " + Digits(r.Bound)
	}
	return Digits(v)
}

// writeNotes explains "never" and "> bound" if the table has them.
func (c Comparison) writeNotes(out io.Writer) error {
	never, beyond := false, 0.0
	for _, r := range c.Rows {
		for _, s := range r.systems {
			of, does := r.Of[s.Name()]
			never = never || !does
			if does && r.Bound > 0 && of.Max >= r.Bound {
				beyond = r.Bound
			}
		}
	}
	var err error
	if never {
		_, err = fmt.Fprintln(out, "never: this System does not do this")
	}
	if beyond > 0 && err == nil {
		_, err = fmt.Fprintf(out, "> %s: took longer than that, and the measurement stopped waiting\n", Digits(beyond))
	}
	return err
}

func hundredths(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// moduleVersion returns the version of a module in this program, or "" if it is not recorded.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}
