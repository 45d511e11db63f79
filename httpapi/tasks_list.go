package httpapi

import (
	"errors"
	"net/http"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// mostBodies bounds the bytes of a page.
const mostBodies = 100

var statuses = []string{string(queue.Pending), string(queue.Running), string(queue.Waiting), string(queue.Completed), string(queue.Failed), string(queue.Cancelled)}

// filters are the parameters that say which tasks are meant. They are the flags of curfew ls.
func filters() []param {
	return []param{
		{Name: "queue", Type: text, Doc: "tasks of this queue"},
		{Name: "kind", Type: text, Doc: "tasks of this kind"},
		{Name: "status", Type: list, Words: statuses, Doc: "tasks of these statuses"},
		{Name: "timed_out", Type: flag, Doc: "tasks that timed out"},
		{Name: "agent", Type: text, Doc: "children of the task with this id"},
		{Name: "since", Type: instant, Doc: "tasks that were created or ended at this instant or later"},
		{Name: "before", Type: instant, Doc: "tasks that were created before this instant, and ended before it if they have ended"},
		{Name: "error", Type: text, Doc: "tasks whose error contains this text"},
	}
}

// filter reads which tasks are meant. A hidden text cannot be searched for.
func (c *call) filter() (inspect.Filter, *failure) {
	f := inspect.Filter{Queue: c.query.text("queue"), Kind: c.query.text("kind"), TimedOut: c.query.flag("timed_out"), Owner: c.query.text("agent"),
		Since: c.query.instant("since"), Before: c.query.instant("before"), ErrorText: c.query.text("error")}
	for _, word := range c.query.list("status") {
		f.Statuses = append(f.Statuses, queue.Status(word))
	}
	if c.hides() && f.ErrorText != "" {
		return f, wrong("error", "cannot be used, since the texts of errors are hidden")
	}
	return f, nil
}

func listRoutes() []route {
	paging := []param{
		{Name: "limit", Type: number, Default: "100", Least: 1, Most: 1000, Doc: "return so many tasks at most"},
		{Name: "cursor", Type: text, Doc: "continue behind a page: its next, with the same filters"},
		{Name: "bodies", Type: flag, Doc: "add payloads and results, of 100 tasks at most"}, hidePayloads,
	}
	return []route{{ID: "listTasks", Method: http.MethodGet, Path: "tasks", Role: Read, Query: append(filters(), paging...), Answer: inspect.ListPage{}, Status: []int{200}, Serve: listTasks,
		Summary: "Lists tasks, a page at a time, the newest first in each index. A page can be empty and not be the last: the last one has an empty next"}}
}

func listTasks(c *call) (any, error) { return listOf(c, c.query.text("kind")) }

// listOf lists tasks of a kind, or all for "".
func listOf(c *call, kind string) (any, error) {
	f, refused := c.filter()
	if refused != nil {
		return nil, refused
	}
	f.Kind = kind
	if f.Bodies = c.query.flag("bodies") && !c.hides(); f.Bodies && c.query.number("limit") > mostBodies {
		return nil, wrong("limit", "must not be more than %d with bodies: read smaller pages", mostBodies)
	}
	page, err := inspect.List(c, c.q, f, c.query.text("cursor"), c.query.number("limit"))
	if invalid := new(refusal.InvalidError); errors.As(err, &invalid) && invalid.Field == "page" {
		return nil, wrong("cursor", "is not the next of a page with these filters: begin without a cursor")
	}
	if err != nil {
		return nil, err
	}
	if c.hides() {
		for _, l := range page.Lines {
			inspect.Hide(l.Record)
		}
	}
	if page.Lines == nil {
		page.Lines = []inspect.Line{}
	}
	return page, nil
}
