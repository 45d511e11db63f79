package plan

import (
	"cmp"
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
	found []placed
	more  int // that are not in found
}

// placed is a fault with the order of its value in the file.
type placed struct {
	fault Fault
	order int
}

// maxFaults is how many faults are named. A definition with more of them has them counted.
const maxFaults = 1000

func (r *faulty) at(t *tree, format string, args ...any) {
	if len(r.found) >= maxFaults {
		r.more++
		return
	}
	r.found = append(r.found, placed{Fault{Path: t.path(), Line: t.line, Text: fmt.Sprintf(format, args...)}, t.order})
}

// all returns the faults in the order of the file, each once; nil if there are none.
func (r *faulty) all() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b placed) int { return cmp.Or(a.order-b.order, cmp.Compare(a.fault.Path, b.fault.Path)) })
	var faults Faults
	for _, p := range slices.Compact(r.found) {
		faults = append(faults, p.fault)
	}
	if r.more > 0 {
		faults = append(faults, Fault{Line: faults[len(faults)-1].Line, Text: fmt.Sprintf("has %d more faults, which are not listed", r.more)})
	}
	return faults
}
