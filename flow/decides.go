package flow

import (
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/queue"
)

// Decides returns the node that limits how long a live run can take: of the nodes that are under way, the one whose deadline comes first.
// node is its key, with the keys of the parts around it in front if Read has read them. at is its deadline, zero if it has none. The
// sentence says what the run waits for and what happens at the deadline. If the run has ended, or no node is under way, node is "" and the
// sentence says so.
func Decides(r *Run) (node string, at time.Time, sentence string) {
	if r == nil {
		return "", at, "There is no run."
	}
	if r.Phase.over() && r.Phase != Unknown {
		return "", at, "The run has ended: " + string(r.Phase) + "."
	}
	path, n, in := r.nearest()
	limit := limitOf(r)
	if n == nil {
		return "", limit, fmt.Sprintf("No node is under way: the run is %s%s.", r.Phase, ends(r, limit))
	}
	at = n.Deadline
	what := path
	if n.Name != path {
		what = n.Name + " (" + path + ")"
	}
	return path, at, "The run waits for node " + what + n.says(r, in) + "."
}

// limitOf returns when a run is out of time.
func limitOf(r *Run) time.Time {
	if r.Record == nil {
		return time.Time{}
	}
	return r.Record.Until
}

// ends says when a run is out of time.
func ends(r *Run, limit time.Time) string {
	if limit.IsZero() {
		return ", and has no limit"
	}
	return ", and is out of time " + r.in(limit)
}

// in says how far away an instant is.
func (r *Run) in(at time.Time) string {
	left := at.Sub(r.At)
	if left <= 0 {
		return "now"
	}
	if left > time.Minute {
		left = left.Round(time.Second)
	}
	return "in " + duration.Duration(left.Round(time.Millisecond)).String()
}

// nearest returns the node under way that is out of time first, and the run or part in which it is.
func (r *Run) nearest() (path string, found *Node, in *Run) {
	before := func(a, b *Node) bool {
		if a.Deadline.IsZero() || b.Deadline.IsZero() {
			return b.Deadline.IsZero() && !a.Deadline.IsZero()
		}
		if a.Deadline.Equal(b.Deadline) {
			return a.bound != ofRun && b.bound == ofRun
		}
		return a.Deadline.Before(b.Deadline)
	}
	for _, n := range r.Nodes {
		if n.Phase.over() && n.Token != TokenSiblings || n.Task == "" {
			continue
		}
		key, node, where := n.Key, n, r
		if n.Part != nil {
			if inner, deeper, part := n.Part.nearest(); deeper != nil && (n.bound == ofRun || !before(n, deeper)) {
				key, node, where = n.Key+"/"+inner, deeper, part
			}
		}
		if node.Token == TokenSiblings {
			continue // it waits for others, which are nodes too
		}
		if found == nil || before(node, found) {
			path, found, in = key, node, where
		}
	}
	return path, found, in
}

// says returns the second half of the sentence of Decides: the limit of the node, and what happens when it is over.
func (n *Node) says(r, in *Run) string {
	whole := "the run"
	if in != r {
		whole = "its part"
	}
	switch left := r.in(n.Deadline); n.bound {
	case ofTask:
		return ", which is out of time " + left + "; then " + n.then(whole)
	case ofAttempt:
		return ", whose attempt is out of time " + left + "; then " + n.retried(whole)
	case ofLine:
		return ", which has been in line too long " + left + "; then " + n.then(whole)
	case ofSiblings:
		then := whole + " fails"
		if n.siblings.proceed {
			then = "they continue without it"
		}
		return ", whose siblings wait for it before " + n.siblings.to + " and are out of time " + left + "; then " + then
	case ofRun:
		if n.own() {
			return ", which is out of time " + left + ", and so is the run"
		}
		return ", which has no limit of its own; the run is out of time " + left
	}
	return ", which has no limit, and neither has the run: nothing but a signal or a cancellation ends this wait if the node does not end"
}

// own reports whether the node has a limit of its own at the instant of its deadline.
func (n *Node) own() bool {
	return n.record != nil && (n.record.Deadline.Equal(n.Deadline) || n.record.LimitAt.Equal(n.Deadline))
}

// retried says what follows when an attempt is out of time.
func (n *Node) retried(whole string) string {
	if r := n.record; r != nil && r.Fields["on_timeout"] == string(queue.OnTimeoutRetry) && r.Retries < r.MaxRetries {
		return fmt.Sprintf("it is tried again, for the %s time of %d", ordinal(r.Retries+1), r.MaxRetries)
	}
	return n.then(whole)
}

func ordinal(n int) string {
	switch {
	case n%100/10 == 1:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// then says what follows when the node has timed out.
func (n *Node) then(whole string) string {
	switch c := n.call; {
	case c != nil && c.Excuses.Timeout:
		return whole + " continues without it"
	case c != nil && c.Retry.Limit >= n.Attempts && c.Retry.Limit > 0 && c.Retry.Expression == "" && !n.total():
		return "it is tried again"
	case n.siblings != nil && !n.siblings.needed:
		return "its siblings continue without it"
	}
	return whole + " fails"
}

// total reports whether the limit of the node is for all its attempts, so that none follows it.
func (n *Node) total() bool {
	return n.bound == ofTask && (n.call.Times.Total.Set || n.Template == "" && n.call.Action != nil && n.call.Action.Type != plan.WorkflowCall)
}
