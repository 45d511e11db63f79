package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow/internal/plan"
)

// Plan has the times of a definition: the bounds of each node, and of the whole.
type Plan struct {
	ID, Version string
	Timeout     time.Duration // of a run; 0: none
	Nodes       []PlanNode    // template by template, the first one first

	// Latest is the latest end of a run after its beginning: what its nodes can take at most one after the other, and no
	// more than Timeout. 0: never. Nodes in line wait for a worker, which only their own limits bound. A kind can have
	// limits and retries of its own in a namespace: a definition does not know them. Such retries can make a run end later. A task whose worker dies begins its time in line
	// and its attempt again, at most three times, which is not counted here: the timeout of a node bounds that too.
	Latest time.Duration
	// Unbounded are the nodes that have no limit, as template/node: only the run, or a template around them, bounds them.
	Unbounded []string
}

// PlanNode is what a definition says about a node.
type PlanNode struct {
	Template, Name string
	Kind           string   // of its tasks, "" if the run does it itself
	Calls          string   // the template that it follows
	WaitsFor       []string // nodes of its template
	FanIn          string   // of a node behind a fan-in: what it waits for

	Timeout, AttemptTimeout, QueueTimeout time.Duration // 0: none

	Attempts  int    // at most; a kind can have retries of its own, for nodes that say nothing about them
	Retries   string // when it is tried again, "" for never
	Latest    time.Duration
	Unbounded bool // Latest is unknown: nothing limits it

	ofKind bool // its retries are those of its kind
}

// Outline reads a definition and returns what it says about time. Its error is nil, or [Faults].
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
		if o.of(x).never && x.Graph != nil && !o.someUnbounded(x) {
			p.Unbounded = append(p.Unbounded, x.Name+" (its transitions go round)")
		}
	}
	whole := o.of(d.Templates[d.Entry])
	if p.Latest = whole.time; whole.never || p.Timeout > 0 && p.Timeout < whole.time {
		p.Latest = p.Timeout
	}
	return p, nil
}

// span is how long something can take.
type span struct {
	time  time.Duration
	never bool // nothing ends it
}

// furthest is further than a run can last.
const furthest = 100 * 365 * 24 * time.Hour

func (s span) then(next span) span {
	return span{min(s.time+next.time, furthest), s.never || next.never}
}

func longest(a, b span) span { return span{max(a.time, b.time), a.never || b.never} }

// within returns a span that a limit bounds, too.
func (s span) within(limit plan.Span) span {
	if limit.Time > 0 && (s.never || limit.Time < s.time) {
		return span{time: limit.Time}
	}
	return s
}

func (s span) times(n int) span {
	if s.time > 0 && n > int(furthest/s.time) {
		return span{furthest, s.never}
	}
	return span{s.time * time.Duration(n), s.never}
}

// outline computes the bounds of templates. They do not call themselves.
type outline struct {
	d     *plan.Definition
	known map[string]span
	seen  map[string]bool
}

// reached returns the templates that a run can follow, each once, callers first.
func (o *outline) reached() (all []*plan.Template) {
	next := []string{o.d.Entry}
	for len(next) > 0 {
		x := o.d.Templates[next[0]]
		next = next[1:]
		if x == nil || o.seen[x.Name] {
			continue
		}
		o.seen[x.Name] = true
		if x.Action == nil || x.Name == o.d.Entry {
			all = append(all, x)
		}
		for _, c := range x.Calls() {
			next = append(next, c.Template)
		}
	}
	return all
}

func (o *outline) someUnbounded(x *plan.Template) bool {
	for _, c := range x.Calls() {
		if o.call(c).never {
			return true
		}
	}
	return false
}

// of returns how long a template can take, without the limits of its callers.
func (o *outline) of(x *plan.Template) span {
	if s, known := o.known[x.Name]; known {
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
		if n, known := plan.Listed(x.Loop.Items); known {
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
	o.known[x.Name] = s
	return s
}

// dag returns the longest way through a DAG.
func (o *outline) dag(d *plan.DAG) (all span) {
	ends := map[string]span{}
	var end func(c *plan.Call) span
	end = func(c *plan.Call) span {
		if s, known := ends[c.Name]; known {
			return s
		}
		var before span
		for _, name := range c.After {
			before = longest(before, end(d.Node(name)))
		}
		ends[c.Name] = before.then(o.call(c))
		return ends[c.Name]
	}
	for _, c := range d.Nodes {
		all = longest(all, end(c))
	}
	return all
}

// graph returns the longest way through a graph. A way that goes round can be followed without end.
func (o *outline) graph(g *plan.Graph) span {
	ways, under := map[string]span{}, map[string]bool{}
	var way func(node string) span
	way = func(node string) span {
		if s, known := ways[node]; known {
			return s
		}
		if under[node] {
			return span{never: true}
		}
		under[node] = true
		var after span
		for _, x := range g.Leaving(node) {
			after = longest(after, way(x.To))
		}
		under[node] = false
		ways[node] = o.call(g.Node(node)).then(after)
		return ways[node]
	}
	return way(g.Initial)
}

// call returns how long a node can take with all its attempts.
func (o *outline) call(c *plan.Call) span {
	times, x, action := o.d.Times(c).AtMost(), o.d.Templates[c.Template], o.d.Action(c)
	var once span
	switch {
	case x != nil && action == nil:
		once = o.of(x)
	case action.Type == plan.Echo && !suspends(c), action.Type == plan.Set:
		return span{}
	case action.Type == plan.Sleep:
		once = sleeps(action).within(times.Attempt)
	case action.Type == plan.Wait, action.Type == plan.Echo, action.Type == plan.WorkflowCall:
		once = span{never: true}.within(times.Attempt) // what is called has a limit of its own, which is not known here
	default:
		once = span{times.Attempt.Time + times.Line.Time, times.Attempt.Time == 0 || times.Line.Time == 0}
	}
	all := once
	for i := range c.Retry.Limit {
		all = all.then(once).then(span{time: c.Retry.Backoff.Before(i + 2)})
	}
	return all.within(times.Total)
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
		return span{never: true}
	}
	d, err := durationOf(options["duration"])
	return span{d, err != nil} // an expression decides when the run is there
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
		n.WaitsFor, n.FanIn = before(x.Graph, c.Name)
	}
	s := o.call(c)
	n.Latest, n.Unbounded = s.time, s.never
	return n
}

// before returns from where a node of a graph is reached, and what a fan-in before it waits for.
func before(g *plan.Graph, node string) (from []string, fanIn string) {
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

// computed says how long a synchronization waits that gives no time.
func computed(g *plan.Graph, group string) string {
	nodes, _ := g.Within(group)
	longest := g.Longest(nodes)
	if fan := g.Fan(group); fan != nil {
		if tokens, known := fan.FanOut.Made(); known {
			return duration.Duration(plan.MeetingTime(longest, tokens)).String()
		}
	}
	if one := plan.MeetingTime(longest, 1); one < plan.LongestMeeting {
		return duration.Duration(one).String() + " × tokens, and 30m,"
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
