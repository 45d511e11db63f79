package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"github.com/curfew-dev/curfew/inspect"
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
	t, f := task(c.raw).read("", c.q.MaxBytes())
	if f != nil {
		return nil, f
	}
	c.task, c.queue, c.kind = t.ID, cmp.Or(t.Queue, "default"), t.Kind
	t.Headers = c.carried(t.Headers)
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
	all := make([]queue.Task, len(body.Tasks))
	for i, text := range body.Tasks {
		var f *failure
		if all[i], f = text.read("tasks["+strconv.Itoa(i)+"]", c.q.MaxBytes()); f != nil {
			return nil, f
		}
		all[i].Headers = c.carried(all[i].Headers)
	}
	receipts, err := c.q.EnqueueAll(c, all)
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
