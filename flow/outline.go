package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// Plan holds the time bounds of a definition: of each node, and of the whole.
type Plan struct {
	ID, Version string
	Timeout     time.Duration // of a run; 0: none
	Nodes       []PlanNode    // template by template, the first one first

	// Latest is the latest end of a run, counted from its beginning. It is the greatest sum of the
	// nodes' times along one way, but no more than Timeout. 0 means that nothing bounds the run.
	//
	// Latest does not include everything. Only their own limits bound nodes that wait in line for a
	// worker. A kind can have limits and retries in a namespace, which a definition does not know,
	// and such retries can make a run end later. A task whose worker dies begins its time in line
	// and its attempt again, at most three times; the timeout of a node bounds that too.
	Latest time.Duration
	// Unbounded lists the nodes without a limit, as template/node. Only the run, or a template
	// around them, bounds them.
	Unbounded []string
}

// PlanNode is a node of a definition with its time bounds.
type PlanNode struct {
	Template, Name string
	Kind           string   // of its tasks, "" if the run itself performs the action
	Calls          string   // the template that it follows
	WaitsFor       []string // nodes of its template
	FanIn          string   // of a node after a fan-in: the tokens that it waits for

	Timeout, AttemptTimeout, QueueTimeout time.Duration // 0: none

	Attempts  int    // greatest number; for nodes without retries of their own, the kind can have some
	Retries   string // the condition of a further attempt, "" for never
	Latest    time.Duration
	Unbounded bool // nothing limits the node, so Latest is unknown

	ofKind bool // its retries are those of its kind
}

// Outline reads a definition and returns its time bounds. Its error is nil, or [Faults].
func Outline(text []byte) (*Plan, error) {
	d, err := plan.Read(text)
	if err != nil {
		return nil, err
	}
	p := &Plan{ID: d.ID, Version: d.Version, Timeout: d.Timeout.Time}
	o := &outline{d, map[string]span{}, map[string]bool{}}
	for _, x := range o.reached() {
		for _, c := range x.Calls() {
			n := o.node(x, c)
			p.Nodes = append(p.Nodes, n)
			if n.Unbounded && n.Calls == "" {
				p.Unbounded = append(p.Unbounded, x.Name+"/"+c.Name)
			}
		}
		if o.template(x).unbounded && x.Graph != nil && !o.someUnbounded(x) {
			p.Unbounded = append(p.Unbounded, x.Name+" (its transitions go round)")
		}
	}
	entry := o.template(d.Templates[d.Entry])
	if p.Latest = entry.time; entry.unbounded || p.Timeout > 0 && p.Timeout < entry.time {
		p.Latest = p.Timeout
	}
	return p, nil
}

// span is the longest time that a node or template takes.
type span struct {
	time      time.Duration
	unbounded bool // nothing ends it
}

// maxTime is longer than any run. Sums stop there, because they could overflow.
const maxTime = 100 * 365 * 24 * time.Hour

func (s span) plus(next span) span {
	return span{min(s.time+next.time, maxTime), s.unbounded || next.unbounded}
}

func longest(a, b span) span { return span{max(a.time, b.time), a.unbounded || b.unbounded} }

// within bounds a span by a limit.
func (s span) within(limit plan.Span) span {
	if limit.Time > 0 && (s.unbounded || limit.Time < s.time) {
		return span{time: limit.Time}
	}
	return s
}

func (s span) times(n int) span {
	if s.time > 0 && n > int(maxTime/s.time) {
		return span{maxTime, s.unbounded}
	}
	return span{s.time * time.Duration(n), s.unbounded}
}

// outline computes the bounds of templates. The recursion ends, because templates do not call
// themselves.
type outline struct {
	d     *plan.Definition
	cache map[string]span
	seen  map[string]bool
}

// reached returns the templates that a run can follow, each once, callers first.
func (o *outline) reached() (templates []*plan.Template) {
	next := []string{o.d.Entry}
	for len(next) > 0 {
		x := o.d.Templates[next[0]]
		next = next[1:]
		if x == nil || o.seen[x.Name] {
			continue
		}
		o.seen[x.Name] = true
		if x.Action == nil || x.Name == o.d.Entry {
			templates = append(templates, x)
		}
		for _, c := range x.Calls() {
			next = append(next, c.Template)
		}
	}
	return templates
}

func (o *outline) someUnbounded(x *plan.Template) bool {
	for _, c := range x.Calls() {
		if o.call(c).unbounded {
			return true
		}
	}
	return false
}

// template returns the time of a template, without the limits of its callers.
func (o *outline) template(x *plan.Template) span {
	if s, ok := o.cache[x.Name]; ok {
		return s
	}
	var s span
	switch {
	case x.DAG != nil:
		s = o.dag(x.DAG)
	case x.Graph != nil:
		s = o.graph(x.Graph)
	case x.Loop != nil:
		rounds := x.Loop.Most
		if n, ok := plan.Listed(x.Loop.Items); ok {
			rounds = min(rounds, n)
		}
		if x.Loop.Parallel > 1 {
			rounds = (rounds + x.Loop.Parallel - 1) / x.Loop.Parallel
		}
		s = o.call(x.Loop.Body).times(rounds)
	default:
		s = o.call(x.Calls()[0])
	}
	s = s.within(x.Times.AtMost().Total)
	o.cache[x.Name] = s
	return s
}

// dag returns the time of the longest way through a DAG.
func (o *outline) dag(d *plan.DAG) (total span) {
	cache := map[string]span{}
	var end func(c *plan.Call) span
	end = func(c *plan.Call) span {
		if s, ok := cache[c.Name]; ok {
			return s
		}
		var start span
		for _, name := range c.After {
			start = longest(start, end(d.Node(name)))
		}
		cache[c.Name] = start.plus(o.call(c))
		return cache[c.Name]
	}
	for _, c := range d.Nodes {
		total = longest(total, end(c))
	}
	return total
}

// graph returns the time of the longest way through a graph. A cycle is unbounded, because it can be
// followed without end.
func (o *outline) graph(g *plan.Graph) span {
	ways, open := map[string]span{}, map[string]bool{}
	var way func(node string) span
	way = func(node string) span {
		if s, ok := ways[node]; ok {
			return s
		}
		if open[node] {
			return span{unbounded: true}
		}
		open[node] = true
		var rest span
		for _, x := range g.Leaving(node) {
			rest = longest(rest, way(x.To))
		}
		open[node] = false
		ways[node] = o.call(g.Node(node)).plus(rest)
		return ways[node]
	}
	return way(g.Initial)
}

// call returns the time of a node with all its attempts.
func (o *outline) call(c *plan.Call) span {
	times, x, action := o.d.Times(c).AtMost(), o.d.Templates[c.Template], o.d.Action(c)
	var once span
	switch {
	case x != nil && action == nil:
		once = o.template(x)
	case action.Type == plan.Echo && !suspends(c), action.Type == plan.Set:
		return span{}
	case action.Type == plan.Sleep:
		once = sleeps(action).within(times.Attempt)
	case action.Type == plan.Wait, action.Type == plan.Echo, action.Type == plan.WorkflowCall:
		once = span{unbounded: true}.within(times.Attempt) // a called run has its own limit, which is not known here
	default:
		once = span{times.Attempt.Time + times.Line.Time, times.Attempt.Time == 0 || times.Line.Time == 0}
	}
	total := once
	for i := range c.Retry.Limit {
		total = total.plus(once).plus(span{time: c.Retry.Backoff.Before(i + 2)})
	}
	return total.within(times.Total)
}

// suspends reports whether an echo can wait for a signal.
func suspends(c *plan.Call) bool {
	for _, p := range c.Inputs {
		if p.Name == "suspend" {
			return true
		}
	}
	return false
}

func sleeps(a *plan.Action) span {
	v, err := a.Options.Value(map[string]any{})
	options, _ := v.(map[string]any)
	if err != nil {
		return span{unbounded: true}
	}
	d, err := durationOf(options["duration"])
	return span{d, err != nil} // the value of an expression is known only in a run
}

func (o *outline) node(x *plan.Template, c *plan.Call) PlanNode {
	times := o.d.Times(c).AtMost()
	r := replay{plan: o.d, template: x}
	n := PlanNode{Template: x.Name, Name: c.Name, WaitsFor: c.After, Attempts: c.Retry.Limit + 1}
	n.Kind, n.Calls = r.kindOfCall(o.d.ID, c)
	n.Timeout, n.AttemptTimeout, n.QueueTimeout = times.Total.Time, times.Attempt.Time, times.Line.Time
	switch {
	case c.Retry.Limit == 0:
	case c.Retry.Expression != "":
		n.Retries = "if " + c.Retry.Expression
	case times.Attempt.Time > 0 && times.Said && !times.Retries:
		n.Retries = "after errors"
	default:
		n.Retries = "after errors and timeouts of an attempt"
	}
	action := o.d.Action(c)
	n.ofKind = !c.Retry.Set && times.Total.Time == 0 && action != nil && action.OfUsers()
	if x.Graph != nil {
		n.WaitsFor, n.FanIn = sources(x.Graph, c.Name)
	}
	s := o.call(c)
	n.Latest, n.Unbounded = s.time, s.unbounded
	return n
}

// sources returns the nodes from which a node of a graph is reached, and the tokens for which a
// fan-in before it waits.
func sources(g *plan.Graph, node string) (from []string, fanIn string) {
	for _, x := range g.Transitions {
		if x.To != node {
			continue
		}
		from = append(from, x.From)
		if x.Meet == nil {
			continue
		}
		fanIn = "all tokens of " + x.Meet.Group
		if x.Meet.Any {
			fanIn = "one token of " + x.Meet.Group
		} else if x.Meet.M > 0 {
			fanIn = fmt.Sprintf("%d tokens of %s", x.Meet.M, x.Meet.Group)
		}
		switch limit := x.Meet.Timeout; {
		case !limit.Set:
			fanIn += ", at most " + computed(g, x.Meet.Group) + " after the first"
		case limit.Time == 0:
			fanIn += ", without a limit"
		default:
			fanIn += ", at most " + duration.Duration(limit.Time).String() + " after the first"
		}
		if x.Meet.Proceed {
			fanIn += "; then those that have come continue"
		} else {
			fanIn += "; then the run fails"
		}
	}
	return from, fanIn
}

// computed describes the timeout of a synchronization that sets no time.
func computed(g *plan.Graph, group string) string {
	nodes, _ := g.Within(group)
	longest := g.Longest(nodes)
	if fan := g.Fan(group); fan != nil {
		if tokens, ok := fan.FanOut.Made(); ok {
			return duration.Duration(plan.MeetingTime(longest, tokens)).String()
		}
	}
	if single := plan.MeetingTime(longest, 1); single < plan.LongestMeeting {
		return duration.Duration(single).String() + " × tokens, and 30m,"
	}
	return duration.Duration(plan.LongestMeeting).String()
}

// String writes a line for each node, and one for the whole.
func (p *Plan) String() string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	template := ""
	for _, n := range p.Nodes {
		if n.Template != template {
			template = n.Template
			fmt.Fprintf(&b, "%s\n", template)
		}
		fmt.Fprintf(&b, "  %s: %s\n", n.Name, n.line())
	}
	switch {
	case p.Latest == 0 && (p.Timeout == 0 && len(p.Unbounded) > 0):
		fmt.Fprintf(&b, "The run may never end: it has no timeout, and these have no limit: %s\n", strings.Join(p.Unbounded, ", "))
	case len(p.Unbounded) > 0 && p.Latest == p.Timeout:
		fmt.Fprintf(&b, "The run ends at most %v after its beginning, by its timeout; these have no limit: %s\n", duration.Duration(p.Latest), strings.Join(p.Unbounded, ", "))
	case p.Latest == p.Timeout && p.Timeout > 0:
		fmt.Fprintf(&b, "The run ends at most %v after its beginning, by its timeout\n", duration.Duration(p.Latest))
	case !slices.ContainsFunc(p.Nodes, func(n PlanNode) bool { return n.ofKind && !n.Unbounded }):
		fmt.Fprintf(&b, "The run ends at most %v after its beginning\n", duration.Duration(p.Latest))
	case p.Timeout > 0:
		fmt.Fprintf(&b, "The run ends at most %v after its beginning; with the retries of kinds later, but at most %v, by its timeout\n", duration.Duration(p.Latest), duration.Duration(p.Timeout))
	default:
		fmt.Fprintf(&b, "The run ends at most %v after its beginning; with the retries of kinds later\n", duration.Duration(p.Latest))
	}
	return b.String()
}

func (n *PlanNode) line() string {
	var words []string
	switch {
	case n.Unbounded && n.Calls != "":
		words = append(words, "no limit, since something in "+n.Calls+" has none")
	case n.Unbounded:
		words = append(words, "no limit")
	default:
		words = append(words, "at most "+duration.Duration(n.Latest).String())
	}
	for _, limit := range []struct {
		name string
		time time.Duration
	}{{"timeout", n.Timeout}, {"attempt", n.AttemptTimeout}, {"in line", n.QueueTimeout}} {
		if limit.time > 0 {
			words = append(words, limit.name+" "+duration.Duration(limit.time).String())
		}
	}
	if n.Attempts > 1 {
		words = append(words, fmt.Sprintf("%d attempts, %s", n.Attempts, n.Retries))
	} else if n.ofKind && !n.Unbounded {
		words = append(words, "and retries if its kind has some")
	}
	if n.FanIn != "" {
		words = append(words, "waits for "+n.FanIn)
	} else if len(n.WaitsFor) > 0 {
		words = append(words, "after "+strings.Join(n.WaitsFor, ", "))
	}
	return strings.Join(words, "; ")
}
