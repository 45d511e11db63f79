package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
)

// Trial is a benchmark that Compare runs, with its measurement and its figures. ThroughputTrial, DispatchTrial,
// DetectTrial and RecoveryTrial return one.
type Trial struct {
	bench   string // the subcommand
	unit    string // of all figures
	load    string // in words
	runs    int    // the default of CompareConfig.Runs
	bound   float64
	warm    []turn
	turns   []turn
	sizes   Sizes
	figures []figure
}

// figure is a row of the table.
type figure struct {
	name, what string
	can        func(System) bool // nil: every System can
}

// turn is one measurement of one System, while no other System runs. It returns a value for
// each of its figures. Every System has its turn before the next turn begins.
type turn struct {
	figures []figure
	run     func(ctx context.Context, s System) ([]float64, error)
}

// complete lists the figures of all turns.
func (t Trial) complete() Trial {
	for _, turn := range t.turns {
		t.figures = append(t.figures, turn.figures...)
	}
	return t
}

// less reports whether a smaller value is better.
func (t Trial) less() bool { return t.unit != perSecond }

const perSecond = "tasks/s"

// CompareConfig sets the place and the number of runs of a comparison.
type CompareConfig struct {
	// Place is the server and the namespace. Its URL must be set.
	Place Place
	// Given means that the server has other users. Then Compare removes only the Systems'
	// own keys, and returns ErrOccupied if the server has such keys already. Otherwise it
	// empties the server, all databases of it, before every turn.
	Given bool
	// Runs is how often each System is measured. The default depends on the Trial.
	Runs int
}

// Compare measures Systems on one server, in turns. In each run every System has the first turn
// of the trial, then every System has the second turn, and so on. So all Systems see the same
// state of the machine. Ratios compare the first System with each other one. Add
// Floor() to see the most that the server can do.
//
// It fails with fewer than two Systems, and if a name is used twice or is not valid. It returns
// ErrUnreachable if the server does not answer, and ErrOccupied if a given server has keys of a
// System.
func Compare(ctx context.Context, t Trial, c CompareConfig, systems ...System) (Comparison, error) {
	if err := checkNames(systems); err != nil {
		return Comparison{}, err
	}
	g, err := prepare(ctx, c, systems)
	if err != nil {
		return Comparison{}, err
	}
	defer g.close()
	if c.Runs == 0 {
		c.Runs = t.runs
	}
	if _, err := g.round(ctx, t.warm, systems); err != nil {
		return Comparison{}, g.explain(err)
	}
	total := samples{}
	for range c.Runs {
		values, err := g.round(ctx, t.turns, systems)
		if err != nil {
			return Comparison{}, g.explain(err)
		}
		total.add(values)
	}
	out := compare(t, c.Runs, systems, total)
	out.Redis, out.AOF, err = g.server(ctx)
	return out, g.explain(err)
}

// samples holds the values of each figure and System, one for each run.
type samples map[sampled][]float64

type sampled struct{ figure, system string }

func (s samples) add(of samples) {
	for key, values := range of {
		s[key] = append(s[key], values...)
	}
}

// round runs each turn once with each System.
func (g *ground) round(ctx context.Context, turns []turn, systems []System) (samples, error) {
	total := samples{}
	for _, t := range turns {
		for _, s := range systems {
			if !t.fits(s) {
				continue
			}
			values, err := g.turn(ctx, t, s)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", t.figures[0].what, s.Name(), err)
			}
			for i, f := range t.figures {
				key := sampled{f.name, s.Name()}
				total[key] = append(total[key], values[i])
			}
		}
	}
	return total, nil
}

// fits reports whether a System can do the turn. All figures of a turn have the same condition.
func (t turn) fits(s System) bool { return t.figures[0].fits(s) }

func (f figure) fits(s System) bool { return f.can == nil || f.can(s) }

// turn runs one turn of one System, on a server that has no keys of any System.
func (g *ground) turn(ctx context.Context, t turn, s System) (values []float64, err error) {
	if err := g.clear(ctx); err != nil {
		return nil, err
	}
	if err := s.Open(ctx, g.place); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return t.run(ctx, s)
}

var systemName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// checkNames refuses names that appear twice, or that are the name of another field, in JSON.
func checkNames(systems []System) error {
	if len(systems) < 2 {
		return errors.New("a comparison needs two Systems or more")
	}
	taken := slices.Clone(rowFields)
	for _, s := range systems {
		if !systemName.MatchString(s.Name()) || slices.Contains(taken, s.Name()) {
			return fmt.Errorf("the System's name %q must be a letter and then a-z, 0-9 and _, and not one of %q", s.Name(), taken)
		}
		taken = append(taken, s.Name())
	}
	return nil
}

// Comparison is the result of Compare. Its JSON has the names below, which are stable.
type Comparison struct {
	Bench   string `json:"bench"`   // the trial and the other Systems: "throughput --vs asynq"
	Against string `json:"against"` // the other Systems and their versions, without the floor
	Redis   string `json:"redis"`   // the server's version
	AOF     bool   `json:"aof"`     // the server had an append-only file
	Runs    int    `json:"runs"`
	Sizes
	Systems []string `json:"systems"` // the names, in the order of the columns
	Rows    []Row    `json:"rows"`

	load string // in words
}

// Sizes are the sizes of the load. A size that the Trial does not have is 0.
type Sizes struct {
	Tasks   int   `json:"tasks,omitempty"`
	Servers int   `json:"servers,omitempty"`
	Running int   `json:"running,omitempty"`
	Others  int   `json:"others,omitempty"`
	OverMS  int64 `json:"over_ms,omitempty"`
	Kills   int   `json:"kills,omitempty"`
}

// Row is one figure of a comparison, of all Systems.
//
// In JSON each System is a field with its name. It is null if the System never does this.
// "ratio" compares the first System with the second, "of_floor" compares it with the floor, and
// "ratios" has the ratios to all other Systems by name.
type Row struct {
	Name string // stable, such as drain or dispatch_p50
	What string
	Unit string // tasks/s, ms or s
	// Bound is the largest value that is measured, or 0 if there is no such limit. A value
	// that is equal to it means "this or more".
	Bound float64
	// Of has the values of each System that does this, by name.
	Of map[string]Spread
	// Ratios compare the first System with each other one: above 1 the first is faster. For example, 2 means twice as
	// fast. Both turns of a ratio belong to the same run.
	Ratios map[string]Spread

	systems []System
	runs    map[string][]float64 // the values of each System that does this
}

// rowFields are the names of JSON fields, which a System cannot have.
var rowFields = []string{"name", "what", "unit", "bound", "ratio", "ratios", "of_floor"}

// MarshalJSON writes the fields in their order: the name first, the Systems after the unit.
func (r Row) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	add := func(name string, value any) error {
		encoded, err := json.Marshal(value)
		text.WriteString(`,"` + name + `":`)
		text.Write(encoded)
		return err
	}
	for _, field := range r.fields() {
		if err := add(field.name, field.value); err != nil {
			return nil, err
		}
	}
	return append(append([]byte("{"), bytes.TrimPrefix(text.Bytes(), []byte(","))...), '}'), nil
}

type rowField struct {
	name  string
	value any
}

func (r Row) fields() []rowField {
	fields := []rowField{{"name", r.Name}, {"what", r.What}, {"unit", r.Unit}}
	if r.Bound > 0 {
		fields = append(fields, rowField{"bound", r.Bound})
	}
	for _, s := range r.systems {
		fields = append(fields, rowField{s.Name(), orNull(r.Of, s.Name())})
	}
	fields = append(fields, rowField{"ratio", orNull(r.Ratios, r.systems[1].Name())})
	if _, floor := r.Of[floorName]; floor {
		fields = append(fields, rowField{"of_floor", orNull(r.Ratios, floorName)})
	}
	return append(fields, rowField{"ratios", r.Ratios})
}

// orNull returns the value of a key, or nil, which is null in JSON, if the key does not exist.
func orNull(of map[string]Spread, key string) *Spread {
	if value, ok := of[key]; ok {
		return &value
	}
	return nil
}

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
	row := Row{Name: f.name, What: f.what, Unit: t.unit, Bound: t.bound, systems: systems, Of: map[string]Spread{}, Ratios: map[string]Spread{}, runs: map[string][]float64{}}
	ours := all[sampled{f.name, systems[0].Name()}]
	for i, s := range systems {
		if !f.fits(s) {
			continue
		}
		theirs := all[sampled{f.name, s.Name()}]
		row.Of[s.Name()], row.runs[s.Name()] = spread(theirs), theirs
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
		value, ratio := r.cell(s.Name())
		if cells = append(cells, value); i > 0 {
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
			spread, does := r.Of[s.Name()]
			never = never || !does
			if does && r.Bound > 0 && spread.Max >= r.Bound {
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

// Spread summarises the values of several runs.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spread returns the spread of some values, or a zero Spread for no values. The median of an even
// number of values is the mean of the two in the middle.
func spread(values []float64) Spread {
	n := len(values)
	if n == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		Min:    sorted[0],
		Max:    sorted[n-1],
	}
}

// ratios divides the first run of a by the first of b, the second by the second, and so on. Runs
// side by side see the same noise from the machine, so their ratios vary less than the ratio of
// two medians.
func ratios(a, b []float64) []float64 {
	out := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

// text prints a spread as "median (min-max)".
func (s Spread) text(digits func(float64) string) string {
	return fmt.Sprintf("%s (%s-%s)", digits(s.Median), digits(s.Min), digits(s.Max))
}

// Digits formats a figure with three significant digits, or without a fraction from 1000 on.
func Digits(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
