package flow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// Mermaid returns the graph of a definition in the language of Mermaid, each template in its own
// frame. Its error is nil, or [Faults].
func Mermaid(text []byte) (string, error) {
	d, err := plan.Read(text)
	if err != nil {
		return "", err
	}
	var m chart
	o := &outline{d, map[string]span{}, map[string]bool{}}
	templates := o.reached()
	for _, x := range templates {
		m.frame(x.Name, len(templates) > 1, func(ids map[string]string) {
			for _, c := range x.Calls() {
				label := []string{c.Name}
				if c.Template != "" {
					label = append(label, "template "+c.Template)
				} else if c.Action != nil {
					label = append(label, c.Action.Type)
				}
				ids[c.Name] = m.node(label, "")
			}
			m.edges(x, ids)
		})
	}
	return m.String(), nil
}

// Mermaid returns the graph of the run in the language of Mermaid: each node with its phase and its
// remaining time, and the parts that were read in their own frames. A node that ran several times is
// one node of the graph, with the number of its calls in each phase.
func (r *Run) Mermaid() string {
	if r == nil {
		return ""
	}
	var m chart
	m.run(r)
	return m.String()
}

// chart collects the lines of a graph.
type chart struct {
	lines []string
	nodes int
	depth int
}

func (m *chart) add(format string, args ...any) {
	m.lines = append(m.lines, strings.Repeat("  ", m.depth+1)+fmt.Sprintf(format, args...))
}

// String returns the graph with the colors of the phases.
func (m *chart) String() string {
	colors := []string{"Created fill:#eeeeee,stroke:#999999", "Ready fill:#fff3c4,stroke:#b58900", "Running fill:#cfe8ff,stroke:#1f6fb2", "Suspended fill:#e6dcff,stroke:#6c4ab6",
		"Succeeded fill:#d4f4d4,stroke:#2b7a2b", "Failed fill:#ffd6d6,stroke:#b22222", "Error fill:#ffd6d6,stroke:#b22222", "Timeout fill:#ffe0c2,stroke:#c05a00", "Cancelled fill:#dddddd,stroke:#555555"}
	text := "flowchart TD\n" + strings.Join(m.lines, "\n") + "\n"
	for _, color := range colors {
		if phase, _, _ := strings.Cut(color, " "); strings.Contains(text, ":::"+phase) {
			text += "  classDef " + color + "\n"
		}
	}
	return text
}

// frame draws nodes, in a frame if framed.
func (m *chart) frame(name string, framed bool, inside func(ids map[string]string)) {
	ids := map[string]string{}
	if !framed {
		inside(ids)
		return
	}
	m.nodes++
	m.add(`subgraph f%d["%s"]`, m.nodes, quote(name))
	m.depth++
	inside(ids)
	m.depth--
	m.add("end")
}

func (m *chart) node(label []string, class string) string {
	m.nodes++
	for i := range label {
		label[i] = quote(label[i])
	}
	id := fmt.Sprintf("n%d", m.nodes)
	text := fmt.Sprintf(`%s["%s"]`, id, strings.Join(label, "<br/>"))
	if class != "" {
		text += ":::" + class
	}
	m.add("%s", text)
	return id
}

// edges draws the dependencies or the transitions of a template.
func (m *chart) edges(x *plan.Template, ids map[string]string) {
	for _, c := range x.Calls() {
		for _, dependency := range c.After {
			m.add("%s --> %s", ids[dependency], ids[c.Name])
		}
	}
	if x.Graph == nil {
		return
	}
	for _, t := range x.Graph.Transitions {
		var label []string
		if t.Condition != nil {
			label = append(label, t.Condition.String())
		}
		if t.FanOut != nil {
			label = append(label, "fan-out "+t.ID)
		}
		if t.Meet != nil {
			label = append(label, "fan-in of "+t.Meet.Group)
		}
		if len(label) > 0 {
			m.add(`%s -->|"%s"| %s`, ids[t.From], quote(strings.Join(label, ", ")), ids[t.To])
		} else {
			m.add("%s --> %s", ids[t.From], ids[t.To])
		}
	}
}

// run draws the nodes of a run, and then its parts.
func (m *chart) run(r *Run) {
	ids, byName := map[string]string{}, map[string][]*Node{}
	var names []string
	for _, n := range r.Nodes {
		if byName[n.Name] == nil {
			names = append(names, n.Name)
		}
		byName[n.Name] = append(byName[n.Name], n)
	}
	for _, name := range names {
		label, phase := labelOf(r, byName[name])
		ids[name] = m.node(append([]string{name}, label...), string(phase))
	}
	if r.template != nil {
		m.edges(r.template, ids)
	}
	for _, n := range r.Nodes {
		if n.Part != nil {
			m.frame(n.Key, true, func(map[string]string) { m.run(n.Part) })
		}
	}
}

// labelOf returns the lines of a node's label, and the phase that determines its color: the phase of
// the first call under way, otherwise of the first call that did not succeed.
func labelOf(r *Run, calls []*Node) (lines []string, phase Phase) {
	var phases []Phase
	count := map[Phase]int{}
	var nearest *Node
	for _, n := range calls {
		if count[n.Phase]++; count[n.Phase] == 1 {
			phases = append(phases, n.Phase)
		}
		if !n.Deadline.IsZero() && (nearest == nil || n.Deadline.Before(nearest.Deadline)) {
			nearest = n
		}
	}
	phase = phases[0]
	for _, p := range phases {
		if !p.over() && phase.over() || p != Succeeded && phase == Succeeded {
			phase = p
		}
	}
	for _, p := range phases {
		text := string(p)
		if p == Unknown {
			text = "removed"
		}
		if len(calls) > 1 {
			text = fmt.Sprintf("%d %s", count[p], text)
		}
		if len(calls) == 1 && calls[0].Attempts > 1 {
			text += fmt.Sprintf(", attempt %d", calls[0].Attempts)
		}
		lines = append(lines, text)
	}
	if i := slices.IndexFunc(calls, func(n *Node) bool { return n.Token == TokenSiblings }); i >= 0 {
		lines = append(lines, "waiting for siblings")
	}
	if nearest != nil {
		lines = append(lines, "out of time "+r.in(nearest.Deadline))
	}
	return lines, phase
}

// quote escapes a text for a label.
func quote(text string) string {
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", " ", "\r", " ", "`", "#96;").Replace(text)
}
