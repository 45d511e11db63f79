package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Trial is one benchmark that Compare runs: what is measured, and its figures.
// ThroughputTrial, DispatchTrial, DetectTrial and RecoveryTrial make one.
type Trial struct {
	bench   string // the subcommand
	unit    string // of all figures
	load    string // in words
	runs    int    // unless the caller says otherwise
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

// turn is what one System does while the others wait. It returns a value for each of its
// figures, which must be measured for all Systems before the next turn.
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

// less tells whether a smaller value is the better one.
func (t Trial) less() bool { return t.unit != perSecond }

const perSecond = "tasks/s"

// CompareConfig says where a comparison runs and how often.
type CompareConfig struct {
	// Place is where. Its URL must be set.
	Place Place
	// Given says that the server is somebody else's: nothing but the Systems' own keys is
	// removed, and a server that has some of them already is refused with ErrOccupied.
	// Without it the whole server is emptied again and again.
	Given bool
	// Runs is how often each System is measured. Defaults to what the Trial says.
	Runs int
}

// Compare measures Systems in turns, on one server in one run: each turn of the trial with
// the first System, with the second and so on, then the next turn, and after the last one
// again from the first, so that all see the same machine. Ratios are those of the first
// System and each other one. Add Floor() for what the server can do at the most.
//
// It returns ErrUnreachable if the server does not answer, and ErrOccupied if a given
// server has keys of a System.
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

// samples are values by figure and System, one for each run.
type samples map[sampled][]float64

type sampled struct{ figure, system string }

func (s samples) add(of samples) {
	for key, values := range of {
		s[key] = append(s[key], values...)
	}
}

// round lets each System have each turn once.
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

// fits tells whether a System can do the turn. All figures of a turn ask for the same.
func (t turn) fits(s System) bool { return t.figures[0].fits(s) }

func (f figure) fits(s System) bool { return f.can == nil || f.can(s) }

// turn is one turn of one System, on a server without keys of any.
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

// checkNames refuses names that would hide each other, or another field, in JSON.
func checkNames(systems []System) error {
	if len(systems) < 2 {
		return errors.New("a comparison needs two Systems or more")
	}
	taken := slices.Clone(rowFields)
	for _, s := range systems {
		if !systemName.MatchString(s.Name()) || slices.Contains(taken, s.Name()) {
			return fmt.Errorf("the System's name %q must be of a-z, 0-9 and _, and not one of %q", s.Name(), taken)
		}
		taken = append(taken, s.Name())
	}
	return nil
}
