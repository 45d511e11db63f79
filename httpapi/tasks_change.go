package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/lines"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

type (
	// resultBody is a result, as JSON or in base64.
	resultBody struct {
		Result       json.RawMessage `json:"result,omitempty"`
		ResultBase64 *string         `json:"result_base64,omitempty"`
	}
	// signalBody is a payload, as JSON or in base64, and the name of the call.
	signalBody struct {
		Payload       json.RawMessage `json:"payload,omitempty"`
		PayloadBase64 *string         `json:"payload_base64,omitempty"`
		Call          *string         `json:"call,omitempty"`
	}
	// resumeBody is a payload, as JSON or in base64, and the epoch of the suspended agent.
	resumeBody struct {
		Payload       json.RawMessage `json:"payload,omitempty"`
		PayloadBase64 *string         `json:"payload_base64,omitempty"`
		Epoch         *int64          `json:"epoch,omitempty"`
	}
	retryBody struct {
		Call *string `json:"call,omitempty"`
	}
	rejectBody struct {
		Error string `json:"error"`
	}
	// outcomes are the results of a change to several tasks.
	outcomes struct {
		Tasks []lines.Outcome `json:"tasks"`
		Next  string          `json:"next"` // the cursor for the next tasks; "" if all have been looked at
	}
)

func changeRoutes() []route {
	change := func(id, path string, summary string, body any, serve func(*call) (any, error)) route {
		return route{ID: id, Method: http.MethodPost, Path: path, Role: Produce, Summary: summary, Body: body, Bare: body != nil, Answer: lines.Outcome{},
			Status: []int{200}, Errors: []int{409}, Serve: serve}
	}
	reject := change("rejectPromise", "tasks/{id}/reject", "Ends a promise with an error", rejectBody{}, rejectTask)
	reject.Bare = false
	retry := change("retryTask", "tasks/{id}/retry", "Runs an ended task again, as a new task with the same content and time limits. A repeat with the same call makes no other task: the status is 200", retryBody{}, retryTask)
	retry.Status = []int{201, 200}
	return []route{
		change("cancelTask", "tasks/{id}/cancel", "Ends a task as CANCELLED, and its children with it. The status is 409 if it has ended otherwise", reasonBody{}, cancelTask),
		{ID: "cancelTasks", Method: http.MethodPost, Path: "tasks/cancel", Role: Operate, Summary: "Cancels the tasks that match a filter, a page at a time. Make it again with the next of the answer as cursor until that is empty",
			Query: append(filters(), param{Name: "limit", Type: number, Default: "100", Least: 1, Most: 500, Doc: "cancel so many tasks at most"}, param{Name: "cursor", Type: text, Doc: "continue: the next of the answer before, with the same filters"}),
			Body:  reasonBody{}, Bare: true, Answer: outcomes{}, Status: []int{200}, Serve: cancelTasks},
		retry,
		{ID: "deleteTask", Method: http.MethodDelete, Path: "tasks/{id}", Role: Operate, Summary: "Removes the record of an ended task before its retention is over. A record stays for a minute after the end of its task",
			Answer: lines.Outcome{}, Status: []int{200}, Errors: []int{409}, Serve: deleteTask},
		change("resolvePromise", "tasks/{id}/resolve", "Ends a promise with a result. The same again is no error", resultBody{}, resolveTask),
		reject,
		change("signalAgent", "agents/{id}/signals/{name}", "Sends a payload to an agent under a name. The first signal of a name counts, and one more each time the agent requests the name again. A repeat with the same call counts once", signalBody{}, signalAgent),
		change("resumeTask", "tasks/{id}/resume", "Resumes a suspended task: resolves a promise, or the one signal or promise that an agent waits for, with a payload. With epoch, an agent is resumed only if it has this epoch, so that a repeat does not end its next wait", resumeBody{}, resumeTask),
	}
}

// cancelled returns the outcome of cancelling a task. ended is true if the task had ended before, and not by a
// cancellation.
func cancelled(id string, r queue.Cancellation) (o lines.Outcome, ended bool) {
	o = lines.Outcome{ID: id, Status: r.Status, Changed: r.Done, GraceEnds: r.GraceEnds, Text: "cancelled"}
	switch {
	case !r.GraceEnds.IsZero():
		o.Text = "cancelled; its handler can clean up until grace_at"
	case !r.Done && r.Status == queue.Cancelled:
		o.Text = "was cancelled before"
	case !r.Done:
		o.Text, ended = "it was not cancelled, because it is "+string(r.Status)+" already", true
	}
	return o, ended
}

func cancelTask(c *call) (any, error) {
	var body reasonBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	r, err := c.q.Cancel(c, c.id(), body.Reason)
	if err != nil {
		return nil, err
	}
	o, ended := cancelled(c.task, r)
	if ended {
		return nil, fail(http.StatusConflict, "ended", "%s: %s", c.task, o.Text)
	}
	return o, nil
}

func cancelTasks(c *call) (any, error) {
	var body reasonBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	f, refused := c.filter()
	if refused != nil {
		return nil, refused
	}
	if f.Queue == "" && f.Kind == "" && f.Owner == "" && f.ErrorText == "" && f.Since.IsZero() && f.Before.IsZero() && f.Statuses == nil {
		return nil, wrong("query", "must say which tasks: give a filter, such as queue=mail")
	}
	for _, s := range f.Statuses {
		if s.Ended() {
			return nil, wrong("status", "must not be %s: such a task cannot be cancelled", s)
		}
	}
	if f.Statuses == nil {
		f.Statuses = []queue.Status{queue.Pending, queue.Running, queue.Waiting}
	}
	// A hook that was made after the first page began is not cancelled, because it can be the hook of a task on that
	// page.
	start, cursor, ok := strings.Cut(c.query.text("cursor"), "@")
	at, err := strconv.ParseInt(start, 10, 64)
	if !ok || err != nil {
		now, err := inspect.Clock(c, c.q)
		if err != nil {
			return nil, err
		}
		at, cursor = now.UnixMilli(), c.query.text("cursor")
	}
	page, err := inspect.List(c, c.q, f, cursor, c.query.number("limit"))
	if err != nil {
		return nil, err
	}
	answer := outcomes{Tasks: []lines.Outcome{}}
	if page.Next != "" {
		answer.Next = fmt.Sprint(at, "@", page.Next)
	}
	var ids []string
	for _, l := range page.Lines {
		if !strings.Contains(l.ID, "!") || l.CreatedAt.UnixMilli() < at {
			ids = append(ids, l.ID)
		}
	}
	if ids == nil {
		return answer, nil
	}
	results, err := c.q.CancelAll(c, ids, body.Reason)
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		o, _ := cancelled(ids[i], r)
		if r.Err != nil {
			o.Text = failureOf(r.Err).Error()
		}
		answer.Tasks = append(answer.Tasks, o)
	}
	return answer, nil
}

func retryTask(c *call) (any, error) {
	var body retryBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	retry := func() (queue.Receipt, error) { return c.q.Retry(c, c.id(), nil) }
	if body.Call != nil {
		retry = func() (queue.Receipt, error) { return c.q.RetryAs(c, *body.Call, c.id(), nil) }
	}
	r, err := retry()
	if invalid := new(refusal.InvalidError); errors.As(err, &invalid) && invalid.Field == "task" { // its state refuses it
		return nil, fail(http.StatusConflict, "not_ended", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	o := lines.Outcome{ID: r.ID, Status: queue.Pending, Changed: true, RetryOf: c.task, Deadline: r.Deadline, Text: "runs " + c.task + " again"}
	if !r.New {
		c.status = http.StatusOK
		o.Status, o.Changed, o.Text = "", false, "this call has made it before, to run "+c.task+" again"
	}
	return o, nil
}

func deleteTask(c *call) (any, error) {
	r, err := c.q.Delete(c, c.id())
	if err != nil {
		return nil, err
	}
	o := lines.Outcome{ID: c.task, Changed: true, RemovedAt: r.RemovedAt, Text: "removed"}
	if !r.RemovedAt.IsZero() {
		o.Text = "will be removed at removed_at"
	}
	return o, nil
}

func resolveTask(c *call) (any, error) {
	var body resultBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	result, f := either("result", body.Result, body.ResultBase64, c.q.MaxBytes())
	if f != nil {
		return nil, f
	}
	r, err := c.q.Resolve(c, c.id(), result)
	return settled(c.task, "resolved", r, err, r.Status == queue.Completed && bytes.Equal(r.Result, result))
}

func rejectTask(c *call) (any, error) {
	var body rejectBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if body.Error == "" {
		return nil, wrong("error", "must not be empty: it says why")
	}
	if f := contentTooLarge("error", len(body.Error), c.q.MaxBytes()); f != nil {
		return nil, f
	}
	r, err := c.q.Reject(c, c.id(), body.Error)
	return settled(c.task, "rejected", r, err, r.Status == queue.Failed && r.Error == body.Error)
}

func signalAgent(c *call) (any, error) {
	var body signalBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	payload, f := either("payload", body.Payload, body.PayloadBase64, c.q.MaxBytes())
	if f != nil {
		return nil, f
	}
	name, err := nameOf(body.Call)
	if err != nil {
		return nil, err
	}
	r, err := c.q.SignalAs(c, name, c.id(), c.path("name"), payload)
	return settled(c.task+".s-"+c.path("name"), "sent", r, err, r.Status == queue.Completed && bytes.Equal(r.Result, payload))
}

// settled returns the outcome of settling a promise. same is true if it had ended in the same way before.
func settled(id, verb string, r queue.Resolution, err error, same bool) (any, error) {
	if err != nil {
		return nil, err
	}
	o := lines.Outcome{ID: id, Status: r.Status, Changed: r.Done, Text: verb}
	switch {
	case r.Done:
	case same:
		o.Text = "was " + verb + " before, in the same way"
	default:
		return nil, fail(http.StatusConflict, "ended", "%s: it was not %s, because it is %s already, with other content", id, verb, r.Status)
	}
	return o, nil
}

// resumeTask settles the promise that a suspended task waits for, if it waits for only one. Signals are promises too.
// An agent is suspended at most once in each epoch, so its epoch identifies the suspension.
func resumeTask(c *call) (any, error) {
	var body resumeBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	payload, f := either("payload", body.Payload, body.PayloadBase64, c.q.MaxBytes())
	if f != nil {
		return nil, f
	}
	if body.Epoch != nil && *body.Epoch < 1 {
		return nil, wrong("epoch", "%d must be that of the suspended agent, as its task has it", *body.Epoch)
	}
	w, err := inspect.Read(c, c.q, c.id())
	if err != nil {
		return nil, err
	}
	id := c.task
	switch {
	case w.Role == queue.RolePromise && body.Epoch != nil:
		return nil, wrong("epoch", "is for agents: leave it out for a promise, which ends once")
	case body.Epoch != nil && w.Epoch != *body.Epoch:
		return nil, fail(http.StatusConflict, "not_suspended", "%s is %s with the epoch %d, and was not resumed: its suspension of the epoch %d is over. Read the task before you resume it again", id, w.Status, w.Epoch, *body.Epoch)
	case w.Role != queue.RolePromise:
		var open []string
		for _, member := range w.Members {
			if member.Role == queue.RolePromise && !member.Status.Ended() {
				open = append(open, member.ID)
			}
		}
		if len(open) != 1 || w.Status != queue.Waiting {
			return nil, fail(http.StatusConflict, "not_suspended", "%s is %s and waits for %d promises or signals: a task that waits for one can be resumed; otherwise resolve the promise, or send the signal by its name", id, w.Status, len(open))
		}
		id = open[0]
	}
	r, err := c.q.Resolve(c, id, payload)
	if errors.Is(err, refusal.ErrNotFound) {
		return nil, fail(http.StatusConflict, "not_suspended", "%s does not wait any more", c.task)
	}
	return settled(id, "resumed", r, err, r.Status == queue.Completed && bytes.Equal(r.Result, payload))
}
