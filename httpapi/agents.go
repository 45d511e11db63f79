package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The bodies and answers of an agent: a task that schedules children and waits for them.
type (
	suspendBody struct {
		AgentID       *string         `json:"agent_execution_id,omitempty"` // the agent of the path once more, as clients of agents know it
		Epoch         int64           `json:"epoch" missing:"give the epoch of the claim, as fetch returned it, so that an older attempt of the agent cannot suspend it"`
		Worker        string          `json:"worker,omitempty"` // the one that holds the agent
		Reason        string          `json:"reason,omitempty"`
		WaitForSignal *string         `json:"wait_for_signal,omitempty"`
		WaitForTask   *string         `json:"wait_for_task,omitempty"`
		WaitForTasks  *waitForTasks   `json:"wait_for_tasks,omitempty"`
		Timeout       *string         `json:"timeout,omitempty"`
		TimeoutMs     *int64          `json:"timeout_ms,omitempty"`
		OnPending     *string         `json:"on_pending,omitempty"` // of members that have not ended at the timeout: cancel or keep
		UserState     json.RawMessage `json:"user_state,omitempty"`
		Call          *string         `json:"call,omitempty"`
	}
	waitForTasks struct {
		TaskIDs []string `json:"task_ids"`
		Mode    string   `json:"mode,omitempty"`
		Need    int      `json:"need,omitempty"` // of the modes n_of_m and n_settled
	}
	// waitLine is the outcome of a wait.
	waitLine struct {
		Reason  string   `json:"reason"` // satisfied, impossible or timed_out
		Winner  string   `json:"winner,omitempty"`
		At      int64    `json:"at"`
		Members []string `json:"members"`
		Settled []string `json:"settled"` // the members that had ended, in the order of their ends
	}
	suspended struct {
		Status queue.Status `json:"status"`
		Wait   *waitLine    `json:"wait,omitempty"`
	}

	checkpointBody struct {
		Epoch     int64           `json:"epoch"`
		Worker    string          `json:"worker"`
		UserState json.RawMessage `json:"user_state"`
	}
	checkpoint struct {
		UserState []byte    `json:"user_state,omitempty"`
		Wait      *waitLine `json:"wait,omitempty"` // the newest wait that is over
	}

	childBody struct {
		TaskKind       string          `json:"task_kind"`
		Queue          string          `json:"queue,omitempty"`
		Input          json.RawMessage `json:"input,omitempty"`
		InputBase64    *string         `json:"input_base64,omitempty"`
		IdempotencyKey *string         `json:"idempotency_key,omitempty"`
		MaxRetries     *int            `json:"max_retries,omitempty"`
		TimeoutMs      *int64          `json:"timeout_ms,omitempty"`
	}
	childrenBody struct {
		AgentID *string     `json:"agent_execution_id,omitempty"`
		Queue   string      `json:"queue,omitempty"`
		Tasks   []childBody `json:"tasks"`
	}
	childLine struct {
		ID      string       `json:"task_execution_id"`
		Used    bool         `json:"idempotency_key_used"`
		New     bool         `json:"idempotency_key_new"`
		Refused *refusedLine `json:"refusal,omitempty"`
	}
	childLines struct {
		Results []childLine `json:"results"`
	}

	resultsBody struct {
		AgentID *string  `json:"agent_execution_id,omitempty"`
		IDs     []string `json:"task_execution_ids"`
	}
	resultLine struct {
		ID     string       `json:"task_execution_id"`
		Status queue.Status `json:"status"`
		Output []byte       `json:"output,omitempty"` // of COMPLETED
		Error  *string      `json:"error,omitempty"`  // of FAILED and CANCELLED
	}
	resultLines struct {
		Results []resultLine `json:"results"`
	}

	cancelChildBody struct {
		AgentID *string `json:"agent_execution_id,omitempty"`
		Reason  string  `json:"reason,omitempty"`
		Call    *string `json:"call,omitempty"`
	}
	cancelledLine struct {
		Cancelled bool         `json:"cancelled"`
		Status    queue.Status `json:"status"`
	}
)

func agentRoutes() []route {
	return []route{
		{ID: "suspendAgent", Method: http.MethodPost, Path: "agents/{id}/suspend", Role: Work,
			Summary: "Makes an agent wait for tasks or a signal, and gives it back: the status is WAITING. If the wait is over at once, it is RUNNING, and the agent continues",
			Body:    suspendBody{}, Answer: suspended{}, Status: []int{200}, Errors: []int{409}, Serve: suspendAgent},
		{ID: "scheduleAgentTasks", Method: http.MethodPost, Path: "agents/{id}/tasks", Role: Work,
			Summary: "Creates children of an agent. One whose idempotency_key is known is not created again",
			Body:    childrenBody{}, Answer: childLines{}, Status: []int{200}, Errors: []int{409}, Serve: scheduleAgentTasks},
		{ID: "getAgentTaskResults", Method: http.MethodPost, Path: "agents/{id}/tasks/results", Role: Work,
			Summary: "Returns how children of an agent ended. If one of the tasks is not a child of the agent, the answer is 403",
			Body:    resultsBody{}, Answer: resultLines{}, Status: []int{200}, Serve: getAgentTaskResults},
		{ID: "cancelAgentTask", Method: http.MethodPost, Path: "agents/{id}/tasks/{task}/cancel", Role: Work, Bare: true,
			Summary: "Cancels a child of an agent", Body: cancelChildBody{}, Answer: cancelledLine{}, Status: []int{200}, Serve: cancelAgentTask},
		{ID: "checkpointAgent", Method: http.MethodPost, Path: "agents/{id}/checkpoint", Role: Work,
			Summary: "Stores what an agent must remember when it runs again. It replaces what was stored before, and the outcome of the wait before",
			Body:    checkpointBody{}, Answer: checkpoint{}, Status: []int{200}, Errors: []int{409}, Serve: checkpointAgent},
		{ID: "getAgentCheckpoint", Method: http.MethodGet, Path: "agents/{id}/checkpoint", Role: Work,
			Summary: "Returns what an agent remembers, and how its newest wait ended", Answer: checkpoint{}, Status: []int{200}, Serve: getAgentCheckpoint},
	}
}

// agent returns the id of the agent in the path.
func (c *call) agent() (string, *failure) {
	_, f := placeOf(c.q, "id", c.id())
	return c.task, f
}

// sameAgent refuses a body that names another agent than the path.
func sameAgent(agent string, named *string) *failure {
	if named != nil && *named != agent {
		return wrong("agent_execution_id", "must be the agent of the path, or be left out")
	}
	return nil
}

// ofAgent returns the failure for an error of an agent's call. A task of somebody else has the sentence that clients of agents know.
func ofAgent(err error) error {
	if errors.Is(err, refusal.ErrNotOwner) {
		f := fail(http.StatusForbidden, "not_owner", "Task not owned by agent")
		f.cause = err
		return f
	}
	return err
}

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
		tasks[i].Headers = c.withTrace(tasks[i].Headers)
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
		name, err := names.EncodeChild(agent, *b.IdempotencyKey)
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
	records, err := claim.Of(c.q).Results(c, agent, body.IDs)
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
	results, err := c.q.CancelAs(c, name, agent, []string{task}, body.Reason)
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return nil, ofAgent(err)
	}
	return cancelledLine{results[0].Done, results[0].Status}, nil
}
