package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// mostTasks is how many tasks a request may enqueue.
const mostTasks = 1000

func taskRoutes() []route {
	return []route{
		{ID: "enqueueTask", Method: http.MethodPost, Path: "tasks", Role: Produce, Summary: "Enqueues a task. If its id or idempotency key is known, nothing is created, and the answer is the first task",
			Body: task{}, Answer: lines.Enqueued{}, Status: []int{201, 200}, Errors: []int{409}, Serve: enqueueTask},
		{ID: "enqueueTasks", Method: http.MethodPost, Path: "tasks/batch", Role: Produce, Summary: "Enqueues up to 1,000 tasks. All are checked first: if one is not valid, none is created",
			Body: tasksBody{}, Answer: enqueuedLines{}, Status: []int{200}, Serve: enqueueTasks},
		{ID: "getTask", Method: http.MethodGet, Path: "tasks/{id}", Role: Read, Summary: "Returns a task whole: its record, why it is in its state, its children, and what an agent remembers",
			Query: []param{hidePayloads}, Answer: (*inspect.Whole)(nil), Status: []int{200}, Serve: getTask},
		{ID: "getResult", Method: http.MethodGet, Path: "tasks/{id}/result", Role: Read, Poll: true,
			Summary: "Returns how a task has ended. With wait, it waits for the end. The status is 202 if the task has not ended",
			Query:   []param{wait(), hidePayloads}, Answer: lines.End{}, Status: []int{200, 202}, Serve: getResult},
	}
}

func enqueueTask(c *call) (any, error) {
	v, err := jsonx.Parse(c.raw)
	if err != nil {
		return nil, err
	}
	t, f := task{v}.read("", c.q.MaxBytes())
	if f != nil {
		return nil, f
	}
	c.task, c.queue, c.kind = t.ID, cmp.Or(t.Queue, "default"), t.Kind
	t.Headers = c.withTrace(t.Headers)
	r, err := c.q.Enqueue(c, t)
	if r.ID != "" {
		c.task = r.ID
	}
	if errors.Is(err, refusal.ErrUnknown) && r.ID != "" {
		f := failureOf(err)
		f.Problem.Error.Sentence = "Redis did not answer in time, so it is unknown whether the task was stored: GET tasks/" + r.ID + " says it; make the request again if it names an id or an idempotency key"
		return nil, f
	}
	if err != nil {
		return nil, err
	}
	if !r.New {
		c.status = http.StatusOK
	}
	return lines.Enqueued{ID: r.ID, Deadline: r.Deadline, New: r.New}, nil
}

func enqueueTasks(c *call) (any, error) {
	var body tasksBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if n := len(body.Tasks); n < 1 || n > mostTasks {
		return nil, wrong("tasks", "has %d tasks: it must have 1 to %d", n, mostTasks)
	}
	tasks := make([]queue.Task, len(body.Tasks))
	for i, text := range body.Tasks {
		var f *failure
		if tasks[i], f = text.read("tasks["+strconv.Itoa(i)+"]", c.q.MaxBytes()); f != nil {
			return nil, f
		}
		tasks[i].Headers = c.withTrace(tasks[i].Headers)
	}
	receipts, err := c.q.EnqueueAll(c, tasks)
	if err != nil {
		return nil, err
	}
	answer := enqueuedLines{Tasks: make([]enqueuedLine, len(receipts))}
	for i, r := range receipts {
		answer.Tasks[i].Enqueued = lines.Enqueued{ID: r.ID, Deadline: r.Deadline, New: r.New}
		if r.Err != nil {
			p := failureOf(r.Err).Problem.Error
			answer.Tasks[i].Refused = &refusedLine{p.Word, p.Sentence}
		}
	}
	return answer, nil
}

func getTask(c *call) (any, error) {
	w, err := inspect.Read(c, c.q, c.id())
	if err != nil {
		return nil, err
	}
	if c.hides() {
		inspect.Hide(w)
	}
	return w, nil
}

// getResult answers with 202 if the task has not ended in time.
func getResult(c *call) (any, error) {
	var r *queue.Record
	var err error
	if c.waits() {
		ctx, over, stop := c.await()
		defer stop()
		if r, err = c.q.Wait(ctx, c.id()); err != nil && !over() {
			return nil, err
		}
	}
	if r == nil {
		if r, err = c.q.Get(c, c.id()); err != nil {
			return nil, err
		}
	}
	if !r.Status.Ended() {
		c.status = http.StatusAccepted
	}
	if c.hides() {
		inspect.Hide(r)
	}
	return lines.OfEnd(r), nil
}

// mostBodies bounds the bytes of a page.
const mostBodies = 100

var statuses = []string{string(queue.Pending), string(queue.Running), string(queue.Waiting), string(queue.Completed), string(queue.Failed), string(queue.Cancelled)}

// filters are the parameters that select tasks. They match the flags of curfew ls.
func filters() []param {
	return []param{
		{Name: "queue", Type: text, Doc: "tasks of this queue"},
		{Name: "kind", Type: text, Doc: "tasks of this kind"},
		{Name: "status", Type: list, Words: statuses, Doc: "tasks of these statuses"},
		{Name: "timed_out", Type: flag, Doc: "tasks that timed out"},
		{Name: "unbounded", Type: flag, Doc: "tasks that have not ended, and that no deadline ends, their own or an owner's"},
		{Name: "agent", Type: text, Doc: "children of the task with this id"},
		{Name: "since", Type: instant, Doc: "tasks that were created or ended at this instant or later"},
		{Name: "before", Type: instant, Doc: "tasks that were created before this instant, and ended before it if they have ended"},
		{Name: "error", Type: text, Doc: "tasks whose error contains this text"},
	}
}

// filter reads which tasks are meant. A hidden text cannot be searched for.
func (c *call) filter() (inspect.Filter, *failure) {
	f := inspect.Filter{Queue: c.query.text("queue"), Kind: c.query.text("kind"), TimedOut: c.query.flag("timed_out"), Unbounded: c.query.flag("unbounded"), Owner: c.query.text("agent"),
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
