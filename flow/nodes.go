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

// siblings says what a fan-in means for a token that has not come to it yet, or waits there.
type siblings struct {
	to      string // the node behind it
	proceed bool   // when it is out of time, the tokens that have come continue
	needed  bool   // the run fails if this token is lost
}

// created returns how many children a run has ever created.
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
	var all []*Node
	for _, c := range r.template.Calls() {
		nodes := byNode[c.Name]
		if len(nodes) == 0 && r.template.Loop != nil && run.Record.Status == queue.Completed {
			continue // a loop that had no rounds
		}
		if len(nodes) == 0 {
			nodes = []*Node{r.notBegun(run, c, byNode)}
		}
		all = append(all, nodes...)
	}
	return all
}

// addUnexplained adds calls for the children that exist and that the replay has not reached, because records before them are
// no longer stored.
func (r *replay) addUnexplained() {
	var left []string
	for name, record := range r.children.records {
		if record != nil && !r.made[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	for _, name := range left {
		key := strings.ReplaceAll(name, "__", "/")
		if i := strings.LastIndex(key, "/r"); i >= 0 && strings.Trim(key[i+2:], "0123456789") == "" {
			key = key[:i] // a second attempt
		}
		node, _, _ := strings.Cut(key, "/")
		r.saw(node, key, name, nil)
	}
}

// actionOf returns what a call does, and the template that it follows with nodes of its own.
func (r *replay) actionOf(c *plan.Call) (action *plan.Action, template string) {
	if x := r.plan.Templates[c.Template]; x != nil {
		if x.Action != nil {
			return x.Action, ""
		}
		return nil, x.Name
	}
	return c.Action, ""
}

// kindOfCall returns the kind of the tasks of a call, "" if the run itself does what it does.
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

// node returns a node that has begun.
func (r *replay) node(run *Run, c *plan.Call, s *sight) *Node {
	n := &Node{Name: s.node, Key: s.key, call: c}
	n.Kind, n.Template = r.kindOfCall(run.Flow, c)
	var record *queue.Record
	for _, name := range s.children { // the first that is stored says when it began, the last one the rest
		if child := r.children.records[name]; child != nil {
			record = child
			if n.Began.IsZero() {
				n.Began = child.CreatedAt
			}
		}
	}
	switch {
	case s.end != nil && len(s.children) == 0: // the run has done it itself
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
		r.read(run, n, record)
		if s.end != nil {
			n.Phase, n.Msg = Phase(s.end.Phase), s.end.Msg // what the run has made of it
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

// read sets what the record of a node's newest task says.
func (r *replay) read(run *Run, n *Node, record *queue.Record) {
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

// bind sets the nearest instant that decides for a live task, and what it belongs to.
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

// attempts returns how often a node was tried: the queue tries a task again, and a run creates a new child.
func attempts(record *queue.Record, children int, byRun bool) int {
	switch {
	case byRun || children > 1 || record.Role != "":
		return children
	case record.Worker == "": // it is, or was at its end, in line or before its next attempt
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
	for _, before := range c.After {
		if nodes := byNode[before]; len(nodes) == 0 || !nodes[0].Phase.over() {
			n.WaitsFor = append(n.WaitsFor, before)
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

// meet sets the tokens that wait for their siblings, and what a fan-in means for those that have not come yet.
func (r *replay) meet(run *Run, byKey map[string]*Node) {
	if r.machine == nil {
		return // it has not begun
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

// wait sets the token of a node that has ended and whose token waits for its siblings, or waited when the run ended.
func (r *replay) wait(run *Run, n *Node, m machine.Meeting) {
	late := func(at time.Time) bool { return !m.Until.IsZero() && !m.Until.After(at) }
	switch ended := run.Record; {
	case !ended.Status.Ended():
		n.Token, n.Deadline, n.bound = TokenSiblings, m.Until, ofSiblings
		if until := ended.Until; !until.IsZero() && (m.Until.IsZero() || !m.Until.Before(until)) {
			n.Deadline, n.bound = until, ofRun
		}
	case ended.TimedOut:
		n.Token, n.Reason = TokenTimedOut, ReasonWorkflowTimeout
	case r.end != nil && late(r.end.At):
		n.Token, n.Reason = TokenTimedOut, ReasonSynchronizationTimeout
	default:
		n.Token = TokenCancelled
	}
}
