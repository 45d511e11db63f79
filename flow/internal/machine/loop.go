package machine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// loop runs its body for each item of a list, or until an expression holds.
type loop struct {
	Items   []any `json:"-"`                 // not stored, because the inputs determine them
	Begun   int   `json:"begun,omitempty"`   // rounds
	Ended   int   `json:"ended,omitempty"`   // rounds
	Outputs []any `json:"outputs,omitempty"` // of the rounds of items, in their order
	Last    *End  `json:"last,omitempty"`    // the newest end of a round

	of *plan.Loop
}

func newLoop(x *plan.Template, s *state) *loop {
	if s.Loop == nil {
		s.Loop = &loop{}
	}
	l := s.Loop
	if l.of = x.Loop; l.Begun > 0 && l.of.Items != nil {
		l.Items, _ = l.evaluate(s.Inputs) // without error, because begin has evaluated them
	}
	return l
}

func (l *loop) begin(m *Machine) {
	if l.of.Items == nil {
		l.next(m)
		return
	}
	items, err := l.evaluate(m.state.Inputs)
	switch {
	case err != nil:
		m.end(End{Phase: Error, Msg: err.Error()})
	case len(items) > l.of.Most:
		m.end(End{Phase: Error, Msg: fmt.Sprintf("the loop has %d items, and its limit is %d", len(items), l.of.Most)})
	default:
		l.Items, l.Outputs = items, make([]any, len(items))
		for range min(max(l.of.Parallel, 1), len(items)) {
			l.next(m)
		}
		l.finish(m)
	}
}

// evaluate returns the items for these inputs.
func (l *loop) evaluate(inputs map[string]any) ([]any, error) {
	v, err := l.of.Items.Value(map[string]any{"inputs": map[string]any{"parameters": inputs}})
	items, ok := v.([]any)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the items of the loop: %w", err)
	case !ok:
		return nil, errors.New("the items of the loop must be a list")
	}
	return items, nil
}

// next begins the next round, if there is one and the loop has not ended.
func (l *loop) next(m *Machine) {
	if m.state.Over || l.of.Items != nil && l.Begun == len(l.Items) {
		return
	}
	i := l.Begun
	l.Begun++
	m.start(l.of.Body, "round/"+strconv.Itoa(i), l.variables(m, i))
}

// variables returns the values that the expressions of a round can read. Before the first round has
// ended, all values of last are nil.
func (l *loop) variables(m *Machine, i int) map[string]any {
	values := m.variables()
	values["index"], values["last"], values["item"] = i, l.Last.variables(), nil
	if l.of.Items != nil {
		values["item"] = l.Items[i]
	}
	return values
}

func (l *loop) ended(m *Machine, key string, e End) {
	i, _ := strconv.Atoi(strings.TrimPrefix(key, "round/"))
	if e.Phase != Succeeded && !excused(l.of.Body.Excuses, e.Phase) {
		m.end(End{Phase: failure(e.Phase), Code: e.Code, Msg: fmt.Sprintf("round %d: %s%s", i, e.Phase, withColon(e.Msg))})
		return
	}
	l.Ended++
	l.Last = &e
	if l.of.Items != nil {
		l.Outputs[i] = e.value()
		l.next(m)
		l.finish(m)
		return
	}
	switch holds, err := l.of.Until.Condition(l.variables(m, i)); {
	case err != nil:
		m.end(End{Phase: Error, Msg: fmt.Sprintf("until, after round %d: %v", i, err)})
	case holds:
		m.end(End{Phase: Succeeded, Outputs: e.Outputs, Result: e.Result})
	case l.Ended == l.of.Most:
		m.end(End{Phase: Failed, Msg: fmt.Sprintf("the loop has made %d rounds, its limit, and %s does not hold", l.Ended, l.of.Until)})
	default:
		l.next(m)
	}
}

// finish ends a loop over items when all its rounds have ended.
func (l *loop) finish(m *Machine) {
	if l.Ended == len(l.Items) {
		m.end(End{Phase: Succeeded, Outputs: map[string]any{"results": l.Outputs}})
	}
}

func (l *loop) limit() (from, until time.Time) { return from, until }
func (l *loop) passed(*Machine)                {}
