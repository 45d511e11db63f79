package httpapi

import (
	"net/http"

	"github.com/curfew-dev/curfew/queue"
)

// The bodies and answers of a worker. Their names are those of the functions for other languages (docs/reference/protocol.md).
type (
	// askBody is a request for tasks.
	askBody struct {
		Seq     *int64   `json:"seq" missing:"give a number that grows with each fetch of this worker, so that a fetch can be repeated"`
		N       *int     `json:"n,omitempty"`
		Queues  []string `json:"queues,omitempty"` // mail, or mail=3 with a quota
		Lease   *string  `json:"lease,omitempty"`
		LeaseMs *int64   `json:"lease_ms,omitempty"`
	}
	claimLine struct {
		ID              string            `json:"id"`
		Epoch           int64             `json:"epoch"`
		Kind            string            `json:"kind"`
		Queue           string            `json:"queue"`
		Attempt         int               `json:"attempt"`
		CreatedAt       int64             `json:"created_at"`
		Payload         []byte            `json:"payload"`
		DeadlineAt      int64             `json:"deadline_at,omitempty"`
		AttemptEndsAt   int64             `json:"attempt_ends_at,omitempty"`
		MaxRetries      int               `json:"max_retries,omitempty"`
		RetryExpression string            `json:"retry_expression,omitempty"`
		Headers         map[string]string `json:"headers,omitempty"`
	}
	fetched struct {
		Now    int64       `json:"now,omitempty"` // the clock of Redis, with claims
		Seq    int64       `json:"seq"`
		Claims []claimLine `json:"claims"`
		WaitMs int64       `json:"wait_ms"` // when to fetch again
		Stop   bool        `json:"stop"`
	}

	heldBody struct {
		ID       string `json:"id"`
		Epoch    int64  `json:"epoch"`
		Progress string `json:"progress,omitempty"`
	}
	heartbeatBody struct {
		Claims  []heldBody `json:"claims,omitempty"`
		Known   int64      `json:"known,omitempty"`
		Lease   *string    `json:"lease,omitempty"`
		LeaseMs *int64     `json:"lease_ms,omitempty"`
	}
	stopLine struct {
		ID     string `json:"id"`
		Epoch  int64  `json:"epoch"`
		Reason string `json:"reason"`
	}
	beaten struct {
		Stops []stopLine `json:"stops"`
		Stop  bool       `json:"stop"`
	}

	settleBody struct {
		Call     string        `json:"call"`
		Outcomes []outcomeBody `json:"outcomes"`
		Fetch    *askBody      `json:"fetch,omitempty"`
	}
	settledLine struct {
		ID      string       `json:"id"`
		Status  queue.Status `json:"status,omitempty"`
		Refused *refusedLine `json:"refusal,omitempty"`
	}
	settledTasks struct {
		Outcomes []settledLine `json:"outcomes"`
		Fetch    *fetched      `json:"fetch,omitempty"`
	}
)

func workRoutes() []route {
	return []route{
		{ID: "fetchTasks", Method: http.MethodPost, Path: "workers/{worker}/fetch", Role: Work, Poll: true,
			Summary: "Gives tasks to a worker. With wait, it waits for some. A request with the same seq is a repeat and gets the same claims",
			Query:   []param{wait()}, Body: askBody{}, Answer: fetched{}, Status: []int{200}, Serve: fetchTasks},
		{ID: "heartbeat", Method: http.MethodPost, Path: "workers/{worker}/heartbeat", Role: Work,
			Summary: "Renews the lease of a worker, and says which of its attempts must stop. A lease of 0s is goodbye: its tasks are given back",
			Body:    heartbeatBody{}, Answer: beaten{}, Status: []int{200}, Serve: heartbeat},
		{ID: "settleTasks", Method: http.MethodPost, Path: "workers/{worker}/settle", Role: Work, Poll: true,
			Summary: "Reports how attempts ended. With fetch, it then gives tasks as fetchTasks does. A repeat of the same call gets the first answer",
			Query:   []param{wait()}, Body: settleBody{}, Answer: settledTasks{}, Status: []int{200}, Serve: settleTasks},
		{ID: "describeWorker", Method: http.MethodPost, Path: "workers/{worker}/describe", Role: Work,
			Summary: "Stores what people see of a worker: its state, and a JSON object about it",
			Body:    describeBody{}, Answer: describedWorker{}, Status: []int{200}, Serve: describeWorker},
	}
}
