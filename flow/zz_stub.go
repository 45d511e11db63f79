package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Check returns nil, or Faults.
func Check(text []byte) error {
	_, err := plan.Read(text)
	return err
}

// Plan is what a definition says about time: what bounds each node, and the whole.
type Plan struct {
	ID, Version string
	Timeout     time.Duration // of a run; 0: none
	Nodes       []PlanNode
	Latest      time.Duration
	Unbounded   []string
}

// PlanNode is what a definition says about a node.
type PlanNode struct {
	Template, Name, Kind, Calls           string
	WaitsFor                              []string
	FanIn                                 string
	Timeout, AttemptTimeout, QueueTimeout time.Duration
	Attempts                              int
	Retries                               string
	Latest                                time.Duration
	Unbounded                             bool
}

// String returns the plan for people.
func (p *Plan) String() string {
	var b strings.Builder
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, "%s  waits for %s\n", n.Name, strings.Join(n.WaitsFor, ", "))
	}
	return b.String()
}

// Outline says what a definition says of its nodes.
func Outline(text []byte) (*Plan, error) {
	d, err := plan.Read(text)
	if err != nil {
		return nil, err
	}
	p := &Plan{ID: d.ID, Version: d.Version, Timeout: d.Timeout.Time, Latest: d.Timeout.Time}
	for _, c := range callsOf(d, d.Entry) {
		p.Nodes = append(p.Nodes, PlanNode{Template: d.Entry, Name: c.Name, WaitsFor: c.After, Timeout: c.Times.Total.Time, Attempts: c.Retry.Limit + 1})
	}
	return p, nil
}

func callsOf(d *plan.Definition, template string) []*plan.Call {
	switch x := d.Templates[template]; {
	case x == nil:
	case x.DAG != nil:
		return x.DAG.Nodes
	case x.Graph != nil:
		return x.Graph.Nodes
	case x.Loop != nil:
		return []*plan.Call{x.Loop.Body}
	}
	return nil
}

// Definition is a stored definition.
type Definition struct {
	ID       string
	Version  string
	Versions []string
}

// List returns the definitions.
func List(ctx context.Context, q *queue.Queue) ([]Definition, error) {
	words, err := readFlow(ctx, q, "", "")
	if err != nil {
		return nil, err
	}
	var all []Definition
	for i := 0; i+1 < len(words); i += 2 {
		d := Definition{ID: words[i], Version: words[i+1]}
		versions, err := readFlow(ctx, q, d.ID, "*")
		if err != nil {
			return nil, err
		}
		d.Versions = versions[1:]
		slices.Sort(d.Versions)
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Definition) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

func readFlow(ctx context.Context, q *queue.Queue, id, version string) (texts []string, err error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("list flows", id, err)
	}
	reply, err := q.Engine().Call(ctx, 0, "read_flow", id, version)
	words, err := engine.List(reply, err, 1)
	if err != nil {
		return nil, refusal.Failed("list flows", id, err)
	}
	for _, word := range words[1:] {
		texts = append(texts, engine.Text(word))
	}
	return texts, nil
}

// Start enqueues a run.
func Start(ctx context.Context, q *queue.Queue, id string, parameters map[string]any, version string, more queue.Task) (queue.Receipt, error) {
	all, err := List(ctx, q)
	if err != nil {
		return queue.Receipt{}, err
	}
	var known []string
	for _, d := range all {
		known = append(known, d.ID)
		if d.ID != id {
			continue
		}
		if version != "" && !slices.Contains(d.Versions, version) {
			return queue.Receipt{}, refusal.Failed("start a flow", id, fmt.Errorf("%w: there is no version %q of this definition: it has %s", refusal.ErrNotFound, version, strings.Join(d.Versions, ", ")))
		}
		text, _, err := Get(ctx, q, id, version)
		if err != nil {
			return queue.Receipt{}, err
		}
		read, err := plan.Read(text)
		if err != nil {
			return queue.Receipt{}, err
		}
		takes := slices.Clone(read.Inputs)
		if x := read.Templates[read.Entry]; x != nil {
			takes = append(takes, x.Inputs...)
		}
		for name := range parameters {
			if !slices.ContainsFunc(takes, func(p plan.Parameter) bool { return p.Name == name }) {
				return queue.Receipt{}, refusal.Invalid("parameters", "has no input %q", name)
			}
		}
		for _, p := range takes {
			if _, given := parameters[p.Name]; !given && p.Value == nil {
				return queue.Receipt{}, refusal.Invalid("parameters", "needs the input %s", p.Name)
			}
		}
		more.Kind = kindOf(id)
		if more.Payload, err = json.Marshal(input{parameters, version}); err != nil {
			return queue.Receipt{}, err
		}
		return q.Enqueue(ctx, more)
	}
	near := names.Nearest(id, known)
	if near != "" {
		near = " (did you mean " + near + "?)"
	}
	return queue.Receipt{}, refusal.Failed("start a flow", id, fmt.Errorf("%w: there is no definition %q%s", refusal.ErrNotFound, id, near))
}

// Read returns a run.
func Read(ctx context.Context, q *queue.Queue, run string, deep bool) (*Run, error) {
	record, err := q.Get(ctx, run)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(record.Kind, "flow.") {
		return nil, refusal.Invalid("run", "%s is a task of the kind %s, and no run of a flow", run, record.Kind)
	}
	r := &Run{ID: run, Phase: Phase(record.Phase()), Record: record}
	r.Flow, r.Template = flowOf(record.Kind)
	var in input
	json.Unmarshal(record.Payload, &in)
	text, version, err := Get(ctx, q, r.Flow, in.Version)
	if err != nil {
		return nil, err
	}
	r.Version = version
	d, err := plan.Read(text)
	if err != nil {
		return nil, err
	}
	template := r.Template
	if template == "" {
		template = d.Entry
	}
	page, err := inspect.List(ctx, q, inspect.Filter{Owner: run, Looks: 100_000}, "", 1000)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(page.Lines, func(a, b inspect.Line) int { return strings.Compare(a.ID, b.ID) })
	for _, c := range callsOf(d, template) {
		found := false
		for _, l := range page.Lines {
			name := l.ID[len(run)+1:]
			node, _, _ := strings.Cut(name, "__")
			if node != c.Name {
				continue
			}
			found = true
			n := &Node{Name: node, Key: strings.ReplaceAll(name, "__", "/"), Phase: Phase(l.Phase()), Token: tokenOf(l.Record), Kind: l.Kind, Task: l.ID, Attempts: attemptsOf(l.Record),
				WaitsFor: c.After, Began: l.CreatedAt, Ended: l.CompletedAt, Deadline: l.Until, Msg: l.Error, Template: c.Template}
			if l.Kind == kindWait && !n.Phase.ended() {
				n.Phase = Suspended
			}
			if deep && strings.HasPrefix(l.Kind, "flow.") {
				if n.Part, err = Read(ctx, q, l.ID, true); err != nil {
					return nil, err
				}
			}
			r.Nodes = append(r.Nodes, n)
		}
		if !found {
			n := &Node{Name: c.Name, Key: c.Name, Phase: Created, Token: TokenPending, WaitsFor: c.After, Template: c.Template}
			if record.Status == queue.Completed {
				n.Phase, n.Token = Succeeded, TokenCompleted
			}
			r.Nodes = append(r.Nodes, n)
		}
	}
	return r, nil
}

func tokenOf(r *queue.Record) Token {
	switch r.Phase() {
	case "Running":
		return TokenExecuting
	case "Succeeded":
		return TokenCompleted
	case "Timeout":
		return TokenTimedOut
	case "Cancelled":
		return TokenCancelled
	case "Failed", "Error":
		return TokenFailed
	}
	return TokenDispatched
}

// Resume resolves the wait of a node.
func Resume(ctx context.Context, q *queue.Queue, run, node string, value any) error {
	r, err := Read(ctx, q, run, true)
	if err != nil {
		return err
	}
	first, rest, deeper := strings.Cut(node, "/")
	var known []string
	for _, n := range r.Nodes {
		known = append(known, n.Key)
		switch {
		case n.Key == node && n.Kind == kindWait && !n.Phase.ended():
			result, err := json.Marshal(value)
			if err != nil {
				return err
			}
			_, err = q.Resolve(ctx, n.Task, result)
			return err
		case n.Key == node:
			if n.Kind != kindWait || n.Task == "" {
				return refusal.Failed("resume", run, refusal.Invalid("node", "%s does not wait for a signal", node))
			}
			return refusal.Failed("resume", run, fmt.Errorf("%w: the node %s does not wait any more: it is %s", refusal.ErrConflict, node, n.Phase))
		case deeper && n.Key == first && n.Part != nil:
			return Resume(ctx, q, n.Task, rest, value)
		}
	}
	near := names.Nearest(node, known)
	if near != "" {
		near = " (did you mean " + near + "?)"
	}
	return refusal.Failed("resume", run, fmt.Errorf("%w: there is no node %q%s", refusal.ErrNotFound, node, near))
}

func attemptsOf(r *queue.Record) int {
	if r.StartedAt.IsZero() {
		return 0
	}
	return r.Retries + 1
}

func (p Phase) ended() bool {
	return p == Succeeded || p == Failed || p == Error || p == Timeout || p == Cancelled
}

// Runs returns runs.
func Runs(ctx context.Context, q *queue.Queue, id string) ([]*queue.Record, error) {
	page, err := inspect.List(ctx, q, inspect.Filter{Kind: kindOf(id)}, "", 100)
	var all []*queue.Record
	for _, l := range page.Lines {
		all = append(all, l.Record)
	}
	return all, err
}

// Mermaid returns a graph of the run.
func (r *Run) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, n := range r.Nodes {
		fmt.Fprintf(&b, "  %s[\"%s: %s\"]\n", n.Name, n.Key, n.Phase)
		for _, before := range n.WaitsFor {
			fmt.Fprintf(&b, "  %s --> %s\n", before, n.Name)
		}
	}
	return b.String()
}

// Mermaid returns a graph of a definition.
func Mermaid(text []byte) (string, error) {
	p, err := Outline(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for _, n := range p.Nodes {
		fmt.Fprintf(&b, "  %s\n", n.Name)
		for _, before := range n.WaitsFor {
			fmt.Fprintf(&b, "  %s --> %s\n", before, n.Name)
		}
	}
	return b.String(), nil
}
