package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Trial is a benchmark that Compare runs: what is measured, and its figures.
// ThroughputTrial, DispatchTrial, DetectTrial and RecoveryTrial return one.
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

// CompareConfig says where a comparison runs and how often.
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
	all := samples{}
	for range c.Runs {
		of, err := g.round(ctx, t.turns, systems)
		if err != nil {
			return Comparison{}, g.explain(err)
		}
		all.add(of)
	}
	out := compare(t, c.Runs, systems, all)
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
	all := samples{}
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
				all[key] = append(all[key], values[i])
			}
		}
	}
	return all, nil
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
