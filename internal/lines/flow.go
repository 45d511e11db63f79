package lines

import (
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/queue"
)

// Definition is a stored definition of a flow. Version is the newest one.
type Definition struct {
	Definition string   `json:"definition"`
	Version    string   `json:"version"`
	Versions   []string `json:"versions"`
}

// OfDefinition returns the line of a definition.
func OfDefinition(d flow.Definition) Definition {
	return Definition{d.ID, d.Version, append([]string{}, d.Versions...)}
}

// Put is the line for a definition that was stored.
type Put struct {
	Definition string `json:"definition"`
	Version    string `json:"version"`
	New        bool   `json:"new"`
}

// OfPut returns the line of a definition that was stored.
func OfPut(s flow.Stored) Put { return Put{s.ID, s.Version, s.New} }

// Fault is one thing that is wrong with a definition.
type Fault struct {
	Path string `json:"path"` // of the value, such as spec.templates[2].dag.tasks[0].retry
	Line int    `json:"line_number"`
	Text string `json:"sentence"`
}

// OfFaults returns the lines of all faults.
func OfFaults(faults flow.Faults) []Fault {
	list := make([]Fault, len(faults))
	for i, f := range faults {
		list[i] = Fault{f.Path, f.Line, f.Text}
	}
	return list
}

// Run is a run of a flow, or a part of one.
type Run struct {
	ID         string     `json:"id"`
	Definition string     `json:"definition"`
	Version    string     `json:"version,omitempty"`  // "" before the first claim
	Template   string     `json:"template,omitempty"` // of a part
	Phase      flow.Phase `json:"phase"`
	Created    time.Time  `json:"created_at"`
	Completed  time.Time  `json:"completed_at,omitzero"`
	Deadline   time.Time  `json:"deadline_at,omitzero"`
	Result     []byte     `json:"result,omitempty"`
	Error      string     `json:"error,omitempty"`
	Reason     string     `json:"reason,omitempty"` // workflow_timeout if its time was over
	Nodes      []Node     `json:"nodes"`
}

// Node is a node of a run.
type Node struct {
	Node     string     `json:"node"`
	Key      string     `json:"key"` // unique in its run
	Phase    flow.Phase `json:"phase"`
	Token    flow.Token `json:"token,omitempty"`
	Kind     string     `json:"kind,omitempty"`
	Template string     `json:"template,omitempty"`
	Task     string     `json:"task_id,omitempty"`
	Attempts int        `json:"attempts"`
	WaitsFor []string   `json:"waits_for,omitempty"`
	Began    time.Time  `json:"started_at,omitzero"`
	Ended    time.Time  `json:"completed_at,omitzero"`
	Deadline time.Time  `json:"deadline_at,omitzero"`
	Error    string     `json:"error,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Part     *Run       `json:"part,omitempty"`
}

// OfRun returns the line of a run. With hide, it leaves out the data of users: results, and texts of errors.
func OfRun(r *flow.Run, hide bool) *Run {
	if r == nil {
		return nil
	}
	l := &Run{ID: r.ID, Definition: r.Flow, Version: r.Version, Template: r.Template, Phase: r.Phase, Nodes: []Node{}}
	if task := r.Record; task != nil {
		l.Created, l.Completed, l.Deadline = task.CreatedAt, task.CompletedAt, task.Until
		if task.TimeoutType == queue.TimeoutWorkflow {
			l.Reason = flow.ReasonWorkflowTimeout
		}
		if !hide {
			l.Result, l.Error = task.Result, task.Error
		}
	}
	for _, n := range r.Nodes {
		line := Node{Node: n.Name, Key: n.Key, Phase: n.Phase, Token: n.Token, Kind: n.Kind, Template: n.Template, Task: n.Task, Attempts: n.Attempts,
			WaitsFor: n.WaitsFor, Began: n.Began, Ended: n.Ended, Deadline: n.Deadline, Reason: n.Reason, Part: OfRun(n.Part, hide)}
		if !hide {
			line.Error = n.Msg
		}
		l.Nodes = append(l.Nodes, line)
	}
	return l
}

// Plan describes the limits of a definition and its nodes.
type Plan struct {
	Definition string        `json:"definition"`
	Version    string        `json:"version,omitempty"`
	Timeout    time.Duration `json:"timeout_ms,omitempty"` // of a run; 0: none
	Latest     time.Duration `json:"latest_ms,omitempty"`  // the latest end of a run after its beginning; 0: never
	Unbounded  []string      `json:"unbounded_nodes,omitempty"`
	Nodes      []PlanNode    `json:"nodes"`
}

// PlanNode describes the limits of a node. A span of 0 is no limit.
type PlanNode struct {
	Template       string        `json:"template"`
	Node           string        `json:"node"`
	Kind           string        `json:"kind,omitempty"`
	Calls          string        `json:"calls,omitempty"` // the template that it follows
	WaitsFor       []string      `json:"waits_for,omitempty"`
	FanIn          string        `json:"fan_in,omitempty"`
	Timeout        time.Duration `json:"timeout_ms,omitempty"`
	AttemptTimeout time.Duration `json:"attempt_timeout_ms,omitempty"`
	QueueTimeout   time.Duration `json:"queue_timeout_ms,omitempty"`
	Attempts       int           `json:"attempts"`
	Retry          string        `json:"retry,omitempty"`
	Latest         time.Duration `json:"latest_ms,omitempty"`
}

// OfPlan returns the line of a plan, nil for nil.
func OfPlan(p *flow.Plan) *Plan {
	if p == nil {
		return nil
	}
	l := &Plan{Definition: p.ID, Version: p.Version, Timeout: p.Timeout, Latest: p.Latest, Unbounded: p.Unbounded, Nodes: []PlanNode{}}
	for _, n := range p.Nodes {
		l.Nodes = append(l.Nodes, PlanNode{Template: n.Template, Node: n.Name, Kind: n.Kind, Calls: n.Calls, WaitsFor: n.WaitsFor, FanIn: n.FanIn, Timeout: n.Timeout,
			AttemptTimeout: n.AttemptTimeout, QueueTimeout: n.QueueTimeout, Attempts: n.Attempts, Retry: n.Retries, Latest: n.Latest})
	}
	return l
}
