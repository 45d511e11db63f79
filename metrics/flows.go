package metrics

import (
	"cmp"
	"strings"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
)

// node is a node of a flow.
type node struct{ flow, name string }

func (n node) compare(other node) int {
	return cmp.Or(cmp.Compare(n.flow, other.flow), cmp.Compare(n.name, other.name))
}

// flowOf returns the flow whose runs are the tasks of a kind. A kind with a slash is for the parts
// of runs, not for runs.
func flowOf(kind string) (flow string, isFlow bool) {
	flow, isFlow = strings.CutPrefix(kind, "flow.")
	return flow, isFlow && !strings.Contains(flow, "/")
}

// flow returns the label of a flow.
func (n labelSet) flow(name string) string {
	if n.kinds["flow."+name] {
		return name
	}
	return Other
}

// node returns the labels of a node.
func (n labelSet) node(flow, name string) (string, string) {
	if !n.nodes[node{flow, name}] {
		name = Other
	}
	if flow = n.flow(flow); flow == Other {
		name = Other
	}
	return flow, name
}

// phases are the phases of ended tasks.
var phases = []string{"Succeeded", "Failed", "Error", "Timeout", "Cancelled"}

// phaseOf returns the phase of these ended tasks.
func phaseOf(e inspect.Ends) string {
	return (&queue.Record{Status: e.Status, Reason: e.Reason, TimedOut: e.Reason == queue.ReasonTimeout}).Phase()
}

// addFlow adds the runs and the nodes of a flow, if the kind belongs to a flow. With short, because
// the figures of some kinds could not be read, it leaves out sums over flows and nodes, which would
// be too small.
func (s *samples) addFlow(f inspect.KindFigures, labels labelSet, short bool) {
	name, isFlow := flowOf(f.Kind)
	if isFlow {
		if flow := labels.flow(name); flow != Other || !short {
			s.addRuns(f, flow)
		}
	} else if name = Other; f.Kind != inspect.OtherKinds {
		return
	}
	for _, figures := range f.Nodes {
		flow, node := labels.node(name, figures.Node)
		if short && (flow == Other || node == Other) {
			continue
		}
		s.addNode(figures, flow, node)
	}
}

func (s *samples) addRuns(f inspect.KindFigures, flow string) {
	s.add("flow_runs_enqueued_total", 0, flow)
	for _, phase := range phases {
		s.add("flow_runs_finished_total", 0, flow, phase)
	}
	for _, e := range f.Enqueued {
		s.add("flow_runs_enqueued_total", float64(e.Count), flow)
	}
	for _, e := range f.Ends {
		phase := phaseOf(e)
		if e.TimeoutType == queue.TimeoutWorkflow && e.Policy == string(queue.DeadlineFail) {
			phase = "Failed" // on_timeout of the run is fail
		}
		s.add("flow_runs_finished_total", float64(e.Count), flow, phase)
	}
}

func (s *samples) addNode(figures inspect.NodeFigures, flow, name string) {
	for _, phase := range phases {
		s.add("flow_nodes_finished_total", 0, flow, name, phase)
	}
	for _, limit := range []queue.TimeoutType{queue.TimeoutExecution, queue.TimeoutQueue, queue.TimeoutAttempt, queue.TimeoutWorkflow} {
		s.add("flow_node_timeouts_total", 0, flow, name, string(limit))
	}
	s.add("flow_node_timeouts_total", float64(figures.AttemptTimeouts), flow, name, string(queue.TimeoutAttempt))
	for _, e := range figures.Ends {
		s.add("flow_nodes_finished_total", float64(e.Count), flow, name, phaseOf(e))
		if e.Reason == queue.ReasonTimeout {
			s.add("flow_node_timeouts_total", float64(e.Count), flow, name, cmp.Or(string(e.TimeoutType), unknown))
		}
	}
}
