package flows

import (
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/duration"
	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/clip"
)

// branch is a line of a run's tree, for one node.
type branch struct {
	*flow.Node
	stem string // the lines of the tree before its name
	time string
	note string
}

var branches = app.List[branch]{
	Columns: []app.Column[branch]{
		{Name: "node", Show: func(b branch) string { return b.stem + app.PlainText(b.Key) }},
		{Name: "phase", Show: func(b branch) string { return app.OrDash(string(b.Phase)) }, Paint: func(b branch) app.Colour { return colours[b.Phase] }},
		{Name: "attempts", Right: true, Show: func(b branch) string {
			if b.Attempts == 0 || b.Kind == "flow/wait" || b.Kind == "flow/sleep" || b.Kind == "signal" { // no worker runs these
				return "-"
			}
			return fmt.Sprint(b.Attempts)
		}},
		{Name: "time", Show: func(b branch) string { return app.OrDash(b.time) }},
		{Name: "what", Show: func(b branch) string { return b.note }},
	},
}

var colours = map[flow.Phase]app.Colour{flow.Succeeded: app.Green, flow.Failed: app.Red, flow.Error: app.Red, flow.Timeout: app.Red, flow.Cancelled: app.Yellow}

// headline returns the line above a tree.
func headline(r *flow.Run, now time.Time) string {
	words := []string{r.ID, app.PlainText(r.Flow)}
	if r.Version != "" {
		words = append(words, "version "+app.PlainText(r.Version))
	}
	if r.Template != "" {
		words = append(words, "template "+app.PlainText(r.Template))
	}
	words = append(words, string(r.Phase))
	if record := r.Record; record != nil {
		if span := spanOf(record.CreatedAt, record.CompletedAt, record.Until, now); span != "" {
			words = append(words, span)
		}
	}
	return strings.Join(words, "  ")
}

// spanOf returns the time that something took, or that remains for it. It returns "" if nothing
// bounds it.
func spanOf(began, ended, deadline, now time.Time) string {
	switch {
	case !ended.IsZero() && !began.IsZero():
		return "took " + inWords(ended.Sub(began))
	case !ended.IsZero() || deadline.IsZero():
		return ""
	case deadline.Before(now):
		return "out of time since " + inWords(now.Sub(deadline))
	}
	return inWords(deadline.Sub(now)) + " left"
}

// inWords returns a span for people, from a minute on in whole seconds.
func inWords(d time.Duration) string {
	if d >= time.Minute {
		d = d.Truncate(time.Second)
	}
	return duration.Duration(d.Truncate(time.Millisecond)).String()
}

// treeOf returns the lines of a run's tree.
func treeOf(r *flow.Run, now time.Time, hide bool) (all []branch) {
	var grow func(r *flow.Run, stem string)
	grow = func(r *flow.Run, stem string) {
		for i, n := range r.Nodes {
			here, below := stem+"├ ", stem+"│ "
			if i == len(r.Nodes)-1 {
				here, below = stem+"└ ", stem+"  "
			}
			all = append(all, branch{Node: n, stem: here, time: timeOf(n, now), note: nodeNote(n, hide)})
			if n.Part != nil {
				grow(n.Part, below)
			}
		}
	}
	grow(r, "")
	return all
}

func timeOf(n *flow.Node, now time.Time) string {
	if n.Phase == flow.Created && n.Task == "" {
		return ""
	}
	return spanOf(n.Began, n.Ended, n.Deadline, now)
}

// nodeNote describes what a node waits for, or the error of a node that has not succeeded.
func nodeNote(n *flow.Node, hide bool) string {
	switch {
	case n.Msg != "" && !hide:
		return app.Plain(clip.Text(n.Msg, 300))
	case n.Reason != "":
		return app.PlainText(n.Reason)
	case n.Phase == flow.Created && len(n.WaitsFor) > 0:
		return "waits for " + app.Plain(strings.Join(n.WaitsFor, ", "))
	case n.Kind == "signal" && n.Ended.IsZero() && n.Task != "":
		owner := n.Task[:strings.LastIndexByte(n.Task, '.')] // the run, or the part of it in which the node is
		return "waits for a signal: `curfew signal " + app.PlainText(owner+" "+signalOf(n.Task)) + "`"
	case n.Kind == "flow/wait" && n.Ended.IsZero() && n.Task != "":
		return "waits for a value: `curfew flow resume`"
	}
	return ""
}

// signalOf returns the name of a signal from the id of its task.
func signalOf(task string) string {
	_, name, _ := strings.Cut(task[strings.LastIndexByte(task, '.')+1:], "s-")
	name, _, _ = strings.Cut(name, "__")
	return name
}
