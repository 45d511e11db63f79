package machine

import (
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// single follows a template with a single call: a leaf with which a run begins, or a wrapper.
type single struct{}

func newSingle(_ *plan.Template, s *state) *single {
	s.Single = &single{}
	return s.Single
}

func (*single) begin(m *Machine) {
	c := m.callOf("")
	m.start(c, c.Name, m.variables())
}

func (*single) ended(m *Machine, _ string, e End) { m.end(e) }

func (*single) limit() (from, until time.Time) { return from, until }
func (*single) passed(*Machine)                {}
