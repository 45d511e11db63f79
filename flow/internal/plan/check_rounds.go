package plan

import "strings"

// stack is the way from a first name to one that is looked at, for what calls or awaits itself.
type stack struct {
	names []string
	state map[string]state
}

type state int

const (
	under state = iota + 1 // it is on the way
	done
)

// round returns the way from a name to itself, in one line.
func (s *stack) round(name string) string {
	i := len(s.names) - 1
	for s.names[i] != name {
		i--
	}
	way := append(s.names[i:len(s.names):len(s.names)], name)
	if len(way) > 12 {
		way = append(append(way[:6:6], "…"), way[len(way)-5:]...)
	}
	return strings.Join(way, " → ")
}

// length returns how many names the way from a name to itself has.
func (s *stack) length(name string) (n int) {
	for i := len(s.names) - 1; i >= 0; i-- {
		if n++; s.names[i] == name {
			break
		}
	}
	return n
}

// walk visits what is reached from a name, each once, and calls again for a name that is on the way already. It calls after when all that is
// reached from a name was visited.
func (s *stack) walk(name string, next func(string) []string, again, after func(string)) {
	switch s.state[name] {
	case done:
		return
	case under:
		again(name)
		return
	}
	s.state[name] = under
	s.names = append(s.names, name)
	for _, target := range next(name) {
		s.walk(target, next, again, after)
	}
	s.names = s.names[:len(s.names)-1]
	s.state[name] = done
	after(name)
}

// maxNested is how deep tasks can be within each other, as lua/task/plan.lua has it.
const maxNested = 16

// checkRecursion finds templates that call themselves, which nothing would end, and those that are too deep within each other.
func (r *reader) checkRecursion() {
	s, deep, round := &stack{state: map[string]state{}}, map[string]int{}, false
	calls := func(name string) (all []string) {
		if x := r.d.Templates[name]; x != nil {
			for _, c := range x.Calls() {
				all = append(all, c.Template)
			}
		}
		return all
	}
	for _, name := range r.templates {
		s.walk(name, calls, func(name string) {
			round = true
			r.at(r.places[r.d.Templates[name]], "the template calls itself without end: %s", s.round(name))
		}, func(name string) { deep[name] = r.nested(r.d.Templates[name], deep) })
	}
	if n := deep[r.d.Entry]; n > maxNested && !round {
		r.at(r.places[r.d.Templates[r.d.Entry]], "the tasks of a run are %d deep within each other, the limit is %d: call the inner templates from one further out, or begin runs with workflow_call", n, maxNested)
	}
}

// nested returns the depth of tasks below the task of a template. deep holds the depths of the
// templates that it calls.
func (r *reader) nested(x *Template, deep map[string]int) (n int) {
	if x == nil {
		return 0
	}
	for _, c := range x.Calls() {
		called, action := r.d.Templates[c.Template], r.d.Action(c)
		switch {
		case called != nil && action == nil:
			n = max(n, 1+deep[called.Name])
		case action != nil && action.Type != Echo && action.Type != Set:
			n = max(n, 1)
		}
	}
	return n
}

// checkItself finds a call of the definition itself that each run comes to, since no condition and no list is before it.
func (r *reader) checkItself() {
	seen := map[*Template]bool{}
	var visit func(x *Template)
	visit = func(x *Template) {
		if x == nil || seen[x] || r.d.ID == "" {
			return
		}
		seen[x] = true
		for _, c := range x.certain() {
			if a := r.d.Action(c); a != nil && a.Type == WorkflowCall && a.Flow == r.d.ID {
				t := r.places[a]
				if x.Graph != nil {
					t = r.places[c] // its action can be that of other nodes too
				}
				r.at(t, "each run calls %s itself, without end: put a condition of a graph or a loop over a list before it", a.Flow)
			}
			visit(r.d.Templates[c.Template])
		}
	}
	visit(r.d.Templates[r.d.Entry])
}

// certain returns the calls that every successful run of a template makes.
func (x *Template) certain() (all []*Call) {
	switch {
	case x.Graph != nil:
		return x.Graph.certain()
	case x.Loop != nil && x.Loop.Items != nil:
		if n, ok := Listed(x.Loop.Items); !ok || n == 0 {
			return nil
		}
	}
	return x.Calls()
}

// certain returns the nodes that a token comes to without a condition.
func (g *Graph) certain() (all []*Call) {
	seen, next := map[string]bool{}, []string{g.Initial}
	for ; len(next) > 0; next = next[1:] {
		c := g.Node(next[0])
		if c == nil || seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		all = append(all, c)
		for _, t := range g.leaving[c.Name] {
			if t.Condition == nil {
				next = append(next, t.To)
			}
		}
	}
	return all
}
