package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/refusal"
)

// Fault is one thing that is wrong with a definition.
type Fault struct {
	Path string // of the value, such as spec.templates[2].dag.tasks[0].retry
	Line int    // in the file
	Text string
}

func (f Fault) String() string {
	where := f.Path
	if where == "" {
		where = "the definition"
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, where, f.Text)
}

// Faults are all faults of a definition, in the order of the file.
type Faults []Fault

// Error has one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// Is reports whether target is refusal.ErrInvalid.
func (f Faults) Is(target error) bool { return target == refusal.ErrInvalid }

// faulty collects faults while a tree is read.
type faulty struct {
	faults Faults
}

func (r *faulty) at(t *tree, format string, args ...any) {
	r.faults = append(r.faults, Fault{Path: t.path, Line: t.line, Text: fmt.Sprintf(format, args...)})
}

// all returns the faults in the order of the file, each once; nil if there are none.
func (r *faulty) all() error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b Fault) int { return a.Line - b.Line })
	return slices.Compact(r.faults)
}
