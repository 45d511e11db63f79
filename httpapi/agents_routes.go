package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"

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
	// waitLine says how a wait ended.
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

// sameAgent refuses a body with another agent than that of the path.
func sameAgent(agent string, given *string) *failure {
	if given != nil && *given != agent {
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
