package flow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/flow/internal/machine"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/queue"
)

// siblings describes the fan-in of a token that has not arrived there, or waits there.
type siblings struct {
	to      string // the node after the fan-in
	proceed bool   // after the timeout the tokens that have arrived continue
	needed  bool   // without this token the run fails
}

// created returns the number of children that a run has ever created.
func created(run *queue.Record) int {
	n, _ := strconv.Atoi(run.Fields["children"])
	return n
}

// nodes returns the nodes of a run after a replay.
func (r *replay) nodes(run *Run) []*Node {
	r.addUnexplained()
	run.Removed = max(created(run.Record)-r.children.stored(), 0)
	byNode := map[string][]*Node{}
	byKey := map[string]*Node{}
	for _, s := range r.order {
		c := r.template.Call(s.node)
		if c == nil {
			continue
		}
		n := r.node(run, c, s)
		byNode[s.node], byKey[s.key] = append(byNode[s.node], n), n
	}
	r.meet(run, byKey)
	var list []*Node
	for _, c := range r.template.Calls() {
		nodes := byNode[c.Name]
		if len(nodes) == 0 && r.template.Loop != nil && run.Record.Status == queue.Completed {
			continue // a loop that had no rounds
		}
		if len(nodes) == 0 {
			nodes = []*Node{r.notBegun(run, c, byNode)}
		}
		list = append(list, nodes...)
	}
	return list
}

// addUnexplained adds calls for children that exist but that the replay has not reached, because
// earlier records are no longer stored.
func (r *replay) addUnexplained() {
	var missed []string
	for name, record := range r.children.records {
		if record != nil && !r.made[name] {
			missed = append(missed, name)
		}
	}
	slices.Sort(missed)
	for _, name := range missed {
		key := strings.ReplaceAll(name, "__", "/")
		if i := strings.LastIndex(key, "/r"); i >= 0 && strings.Trim(key[i+2:], "0123456789") == "" {
			key = key[:i] // a second attempt
		}
		node, _, _ := strings.Cut(key, "/")
		r.saw(node, key, name, nil)
	}
}

// actionOf returns the action of a call, or the template with nodes of its own that the call
// follows.
func (r *replay) actionOf(c *plan.Call) (action *plan.Action, template string) {
	if x := r.plan.Templates[c.Template]; x != nil {
		if x.Action != nil {
			return x.Action, ""
		}
		return nil, x.Name
	}
	return c.Action, ""
}

// kindOfCall returns the kind of a call's tasks, "" if the run itself performs the action.
func (r *replay) kindOfCall(flow string, c *plan.Call) (kind, template string) {
	switch a, template := r.actionOf(c); {
	case template != "":
		return partOf(flow, template), template
	case a == nil || a.Type == plan.Echo || a.Type == plan.Set:
		return "", ""
	case a.Type == plan.WorkflowCall:
		return kindOf(a.Flow), ""
	case a.Type == plan.Wait:
		return kindWait, ""
	case a.Type == plan.Sleep:
		return kindSleep, ""
	case a.Type == plan.HTTPRequest:
		return kindHTTP, ""
	default:
		return a.Type, ""
	}
}

// node returns the node of a call that has begun.
func (r *replay) node(run *Run, c *plan.Call, s *sight) *Node {
	n := &Node{Name: s.node, Key: s.key, call: c}
	n.Kind, n.Template = r.kindOfCall(run.Flow, c)
	var record *queue.Record
	for _, name := range s.children { // the first stored record has the start, and the last one everything else
		if child := r.children.records[name]; child != nil {
			record = child
			if n.Began.IsZero() {
				n.Began = child.CreatedAt
			}
		}
	}
	switch {
	case s.end != nil && len(s.children) == 0: // the run itself performed the action
		n.Phase, n.Msg, n.Attempts, n.Began, n.Ended = Phase(s.end.Phase), s.end.Msg, 1, s.end.At, s.end.At
	case record == nil && run.Removed > 0:
		n.Msg = "the record of its task has been removed"
	case record == nil && run.Record.Status.Ended():
		n.Phase = Cancelled // the run ended before it could create the task
	case record == nil:
		n.Phase = Created // the run creates its task when a worker continues it
	default:
		n.Kind, n.Task, n.Attempts = record.Kind, record.ID, attempts(record, len(s.children), n.Template != "" || c.Action != nil && c.Action.Type == plan.WorkflowCall)
		n.record = record
		r.setFromRecord(run, n, record)
		if s.end != nil {
			n.Phase, n.Msg = Phase(s.end.Phase), s.end.Msg // the run can change the phase of its task
		}
	}
	n.Token = tokenOf(n.Phase)
	if n.Reason == ReasonWorkflowTimeout {
		n.Token = TokenTimedOut
	}
	if n.Msg == "" && s.end != nil {
		n.Msg = s.end.Msg
	}
	return n
}

// setFromRecord sets the fields that depend on the record of the node's newest task.
func (r *replay) setFromRecord(run *Run, n *Node, record *queue.Record) {
	n.Phase, n.Ended = Phase(record.Phase()), record.CompletedAt
	switch n.Msg = record.Error; {
	case record.Status.Ended() && r.endedWithRun(record) && run.Record.TimedOut:
		n.Reason = ReasonWorkflowTimeout
	case record.Status.Ended():
	case run.Record.Status.Ended() && run.Record.TimedOut: // a sweep will write the end
		n.Phase, n.Reason, n.Ended = Timeout, ReasonWorkflowTimeout, run.Record.CompletedAt
	case run.Record.Status.Ended():
		n.Phase, n.Ended = Cancelled, run.Record.CompletedAt
	default:
		if n.Msg = record.LastError; record.Role != "" {
			n.Phase = Suspended // until a signal comes, or until the timer's instant
		}
		n.bind(record, run)
	}
}

// bind sets the deadline of a live task to its earliest limit, and records which limit that is.
func (n *Node) bind(record *queue.Record, run *Run) {
	if !record.Until.IsZero() {
		n.Deadline, n.bound = record.Until, ofTask
		if !record.Until.Equal(record.Deadline) || record.Until.Equal(run.Record.Until) {
			n.bound = ofRun
		}
	}
	if at := record.LimitAt; !at.IsZero() && (n.Deadline.IsZero() || at.Before(n.Deadline)) {
		n.Deadline, n.bound = at, ofLine
		if record.Status != queue.Pending {
			n.bound = ofAttempt
		}
	}
}

// attempts returns the number of a node's attempts. The queue retries the same task, but a run
// creates a new child for each attempt.
func attempts(record *queue.Record, children int, byRun bool) int {
	switch {
	case byRun || children > 1 || record.Role != "":
		return children
	case record.Worker == "": // it is in line or in its back-off, or was when it ended
		return record.Retries
	}
	return record.Retries + 1
}

func tokenOf(p Phase) Token {
	switch p {
	case Created:
		return TokenPending
	case Ready:
		return TokenDispatched
	case Running, Suspended:
		return TokenExecuting
	case Succeeded:
		return TokenCompleted
	case Failed, Error:
		return TokenFailed
	case Timeout:
		return TokenTimedOut
	case Cancelled:
		return TokenCancelled
	}
	return ""
}

// notBegun returns a node that has no task yet.
func (r *replay) notBegun(run *Run, c *plan.Call, byNode map[string][]*Node) *Node {
	n := &Node{Name: c.Name, Key: c.Name, Phase: Created, call: c}
	n.Kind, n.Template = r.kindOfCall(run.Flow, c)
	if r.template.Graph == nil {
		n.Token = TokenPending
	}
	switch {
	case run.Removed > 0 && run.Record.Status.Ended():
		n.Phase, n.Token = Unknown, ""
		n.Msg = fmt.Sprintf("the records of %d tasks of the run have been removed", run.Removed)
		return n
	case run.Record.Status.Ended():
		if r.template.Graph == nil {
			n.Phase, n.Token = Cancelled, TokenCancelled
			n.Msg = "it had not begun when the run ended"
		}
		return n
	}
	for _, dependency := range c.After {
		if nodes := byNode[dependency]; len(nodes) == 0 || !nodes[0].Phase.over() {
			n.WaitsFor = append(n.WaitsFor, dependency)
		}
	}
	if r.template.Graph != nil {
		for _, x := range r.template.Graph.Transitions {
			if x.To == c.Name && !slices.Contains(n.WaitsFor, x.From) {
				n.WaitsFor = append(n.WaitsFor, x.From)
			}
		}
	}
	return n
}

// over reports whether a phase is final.
func (p Phase) over() bool {
	return slices.Contains([]Phase{Unknown, Succeeded, Failed, Error, Timeout, Cancelled}, p)
}

// meet sets the tokens that wait for their siblings, and the fan-in of the tokens that have not
// arrived.
func (r *replay) meet(run *Run, byKey map[string]*Node) {
	if r.machine == nil {
		return // the run has not begun
	}
	for _, m := range r.machine.Meetings() {
		for _, key := range m.Arrived {
			if n := byKey[key]; n != nil {
				n.siblings = &siblings{to: m.To}
				r.wait(run, n, m)
			}
		}
		for _, key := range m.Missing {
			n := byKey[key]
			if n == nil || run.Record.Status.Ended() {
				continue
			}
			n.siblings = &siblings{m.To, m.Proceed && len(m.Arrived) > 0, slices.Contains(m.Needed, key)}
			if !m.Until.IsZero() && (n.Deadline.IsZero() || m.Until.Before(n.Deadline)) {
				n.Deadline, n.bound = m.Until, ofSiblings
			}
		}
	}
}

// wait sets the token of a node that has ended, if it waits for its siblings, or waited when the run
// ended.
func (r *replay) wait(run *Run, n *Node, m machine.Meeting) {
	late := func(at time.Time) bool { return !m.Until.IsZero() && !m.Until.After(at) }
	switch record := run.Record; {
	case !record.Status.Ended():
		n.Token, n.Deadline, n.bound = TokenSiblings, m.Until, ofSiblings
		if until := record.Until; !until.IsZero() && (m.Until.IsZero() || !m.Until.Before(until)) {
			n.Deadline, n.bound = until, ofRun
		}
	case record.TimedOut:
		n.Token, n.Reason = TokenTimedOut, ReasonWorkflowTimeout
	case r.end != nil && late(r.end.At):
		n.Token, n.Reason = TokenTimedOut, ReasonSynchronizationTimeout
	default:
		n.Token = TokenCancelled
	}
}
