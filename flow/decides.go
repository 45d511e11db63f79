package flow

import (
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow/internal/plan"
	"github.com/curfew-dev/curfew/queue"
)

// Decides returns the node that limits the time of a live run: the node under way with the first
// deadline. node is its key, after the keys of the parts around it if Read has read them. at is its
// deadline, zero if it has none. The sentence describes what the run waits for, and what happens at
// the deadline. If the run has ended, or no node is under way, node is "" and the sentence describes
// that.
func Decides(r *Run) (node string, at time.Time, sentence string) {
	if r == nil {
		return "", at, "There is no run."
	}
	if r.Phase.over() && r.Phase != Unknown {
		return "", at, "The run has ended: " + string(r.Phase) + "."
	}
	path, n, within := r.nearest()
	limit := limitOf(r)
	if n == nil {
		return "", limit, fmt.Sprintf("No node is under way: the run is %s%s.", r.Phase, limitSentence(r, limit))
	}
	at = n.Deadline
	description := path
	if n.Name != path {
		description = n.Name + " (" + path + ")"
	}
	return path, at, "The run waits for node " + description + n.limitText(r, within) + "."
}

// limitOf returns the instant at which a run is out of time.
func limitOf(r *Run) time.Time {
	if r.Record == nil {
		return time.Time{}
	}
	return r.Record.Until
}

// limitSentence describes the instant at which a run is out of time.
func limitSentence(r *Run, limit time.Time) string {
	if limit.IsZero() {
		return ", and has no limit"
	}
	return ", and is out of time " + r.in(limit)
}

// in describes the time from the read until an instant.
func (r *Run) in(at time.Time) string {
	remaining := at.Sub(r.At)
	if remaining <= 0 {
		return "now"
	}
	if remaining > time.Minute {
		remaining = remaining.Round(time.Second)
	}
	return "in " + duration.Duration(remaining.Round(time.Millisecond)).String()
}

// nearest returns the node under way that is out of time first, and its run or part.
func (r *Run) nearest() (path string, first *Node, within *Run) {
	earlier := func(a, b *Node) bool {
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
			if inner, deeper, owner := n.Part.nearest(); deeper != nil && (n.bound == ofRun || !earlier(n, deeper)) {
				key, node, where = n.Key+"/"+inner, deeper, owner
			}
		}
		if node.Token == TokenSiblings {
			continue // it waits for its siblings, whose nodes are compared too
		}
		if first == nil || earlier(node, first) {
			path, first, within = key, node, where
		}
	}
	return path, first, within
}

// limitText returns the second half of the sentence of Decides: the limit of the node, and the
// effect when it is over.
func (n *Node) limitText(r, in *Run) string {
	subject := "the run"
	if in != r {
		subject = "its part"
	}
	switch time := r.in(n.Deadline); n.bound {
	case ofTask:
		return ", which is out of time " + time + "; then " + n.timeoutEffect(subject)
	case ofAttempt:
		return ", whose attempt is out of time " + time + "; then " + n.attemptEffect(subject)
	case ofLine:
		return ", which has been in line too long " + time + "; then " + n.timeoutEffect(subject)
	case ofSiblings:
		effect := subject + " fails"
		if n.siblings.proceed {
			effect = "they continue without it"
		}
		return ", whose siblings wait for it before " + n.siblings.to + " and are out of time " + time + "; then " + effect
	case ofRun:
		if n.hasOwnLimit() {
			return ", which is out of time " + time + ", and so is the run"
		}
		return ", which has no limit of its own; the run is out of time " + time
	}
	return ", which has no limit, and neither has the run: nothing but a signal or a cancellation ends this wait if the node does not end"
}

// hasOwnLimit reports whether the node's deadline is its own limit.
func (n *Node) hasOwnLimit() bool {
	return n.record != nil && (n.record.Deadline.Equal(n.Deadline) || n.record.LimitAt.Equal(n.Deadline))
}

// attemptEffect describes what happens when an attempt is out of time.
func (n *Node) attemptEffect(subject string) string {
	if r := n.record; r != nil && r.Fields["on_timeout"] == string(queue.OnTimeoutRetry) && r.Retries < r.MaxRetries {
		return fmt.Sprintf("it is tried again, for the %s time of %d", ordinal(r.Retries+1), r.MaxRetries)
	}
	return n.timeoutEffect(subject)
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

// timeoutEffect describes what happens when the node has timed out.
func (n *Node) timeoutEffect(subject string) string {
	switch c := n.call; {
	case c != nil && c.Excuses.Timeout:
		return subject + " continues without it"
	case c != nil && c.Retry.Limit >= n.Attempts && c.Retry.Limit > 0 && c.Retry.Expression == "" && !n.isTotal():
		return "it is tried again"
	case n.siblings != nil && !n.siblings.needed:
		return "its siblings continue without it"
	}
	return subject + " fails"
}

// isTotal reports whether the limit of the node is for all its attempts, so that no further attempt
// follows it.
func (n *Node) isTotal() bool {
	return n.bound == ofTask && (n.call.Times.Total.Set || n.Template == "" && n.call.Action != nil && n.call.Action.Type != plan.WorkflowCall)
}
