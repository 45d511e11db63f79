package httpapi

import (
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
)

func scheduleAgentTasks(c *call) (any, error) {
	agent, f := c.agent()
	if f != nil {
		return nil, f
	}
	var body childrenBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if f := sameAgent(agent, body.AgentID); f != nil {
		return nil, f
	}
	if n := len(body.Tasks); n < 1 || n > mostTasks {
		return nil, wrong("tasks", "has %d tasks: it must have 1 to %d", n, mostTasks)
	}
	c.queue = body.Queue
	tasks := make([]queue.Task, len(body.Tasks))
	for i := range body.Tasks {
		if body.Tasks[i].Queue == "" {
			body.Tasks[i].Queue = body.Queue
		}
		if tasks[i], f = body.Tasks[i].read(agent, c.q.MaxBytes()); f != nil {
			return nil, within(f, "tasks["+strconv.Itoa(i)+"]")
		}
		tasks[i].Headers = c.carried(tasks[i].Headers)
	}
	receipts, err := c.q.EnqueueAll(c, tasks)
	if err != nil {
		return nil, err
	}
	answer := childLines{Results: make([]childLine, len(receipts))}
	refused := 0
	for i, r := range receipts {
		used := body.Tasks[i].IdempotencyKey != nil
		answer.Results[i] = childLine{ID: tasks[i].ID, Used: used, New: used && r.New && r.Err == nil}
		if r.Err != nil {
			p := failureOf(r.Err).Problem.Error
			answer.Results[i].Refused = &refusedLine{p.Word, p.Sentence}
			refused++
		}
	}
	if refused == len(receipts) { // such as: the agent has ended
		return nil, receipts[0].Err
	}
	return answer, nil
}

// read returns the child. Its name is made from its key, so that the same key again is the same child. Without a key it gets a new name.
func (b *childBody) read(agent string, maxBytes int) (t queue.Task, f *failure) {
	if strings.HasPrefix(b.TaskKind, "flow/") {
		return t, wrong("task_kind", "is for nodes of flows, which their runs enqueue: use another kind")
	}
	t = queue.Task{ID: agent + ".x-" + names.NewCall(), Kind: b.TaskKind, Queue: b.Queue}
	if b.IdempotencyKey != nil {
		name, err := names.Encode(*b.IdempotencyKey)
		if err != nil {
			return t, wrong("idempotency_key", "must be 1 to 128 bytes of any text: hash a longer one")
		}
		t.ID = agent + "." + name
	}
	if t.Payload, f = either("input", b.Input, b.InputBase64, maxBytes); f != nil {
		return t, f
	}
	if b.TimeoutMs != nil {
		if *b.TimeoutMs < 1 || *b.TimeoutMs > longestSpan.Milliseconds() {
			return t, wrong("timeout_ms", "%d must be 1 to %d: leave it out for no timeout", *b.TimeoutMs, longestSpan.Milliseconds())
		}
		t.Timeout = time.Duration(*b.TimeoutMs) * time.Millisecond
	}
	if b.MaxRetries != nil {
		if *b.MaxRetries < 0 {
			return t, wrong("max_retries", "%d must not be negative", *b.MaxRetries)
		}
		if t.MaxRetries = *b.MaxRetries; t.MaxRetries == 0 {
			t.MaxRetries = queue.NoRetries
		}
	}
	if err := t.Check(maxBytes); err != nil {
		f = failureOf(err)
		if f.Problem.Error.Field == "kind" {
			f.of("task_kind")
		}
		return t, f
	}
	return t, nil
}

func getAgentTaskResults(c *call) (any, error) {
	agent, f := c.agent()
	if f != nil {
		return nil, f
	}
	var body resultsBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if f := sameAgent(agent, body.AgentID); f != nil {
		return nil, f
	}
	if f := checkMembers("task_execution_ids", body.IDs); f != nil {
		return nil, f
	}
	records, err := c.q.Attempts().Results(c, agent, body.IDs)
	if err != nil {
		return nil, ofAgent(err)
	}
	c.renews = true // it is a read
	answer := resultLines{Results: make([]resultLine, len(records))}
	for i, r := range records {
		line := resultLine{ID: r.ID, Status: r.Status}
		switch {
		case r.Status == queue.Completed:
			line.Output = r.Result
		case r.Status.Ended():
			line.Error = &r.Error
		}
		answer.Results[i] = line
	}
	return answer, nil
}

// mostMembers is how many tasks an agent can wait for, or read, at once.
const mostMembers = 10_000

func checkMembers(name string, ids []string) *failure {
	switch n := len(ids); {
	case n == 0:
		return fail(400, "invalid", "select requires at least one future").of(name)
	case n > mostMembers:
		return wrong(name, "has %d ids, and may have %d", n, mostMembers)
	}
	for i, id := range ids {
		if _, err := queue.PartitionOf(id); err != nil {
			return failureOf(err).of(name + "[" + strconv.Itoa(i) + "]")
		}
	}
	return nil
}

func cancelAgentTask(c *call) (any, error) {
	agent, f := c.agent()
	if f != nil {
		return nil, f
	}
	var body cancelChildBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	if f := sameAgent(agent, body.AgentID); f != nil {
		return nil, f
	}
	task := c.path("task")
	if _, f := placeOf(c.q, "task", task); f != nil {
		return nil, f
	}
	name, err := nameOf(body.Call)
	if err != nil {
		return nil, err
	}
	c.task = task
	all, err := c.q.Attempts().CancelAs(c, name, agent, []string{task}, body.Reason)
	if err == nil {
		err = all[0].Err
	}
	if err != nil {
		return nil, ofAgent(err)
	}
	return cancelledLine{all[0].Done, all[0].Status}, nil
}
