package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The bodies and answers of a worker. They use the names of the functions for other languages (docs/reference/protocol.md).
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

// mostHeld is how many attempts a heartbeat can name.
const mostHeld = 10_000

func heartbeat(c *call) (any, error) {
	var body heartbeatBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	lease := usualLease
	if body.Lease != nil || body.LeaseMs != nil {
		var f *failure
		if lease, f = spanOf("lease", body.Lease, body.LeaseMs, mostLease); f != nil {
			return nil, f
		}
	}
	if body.Known < 0 || body.Known > 1<<53 {
		return nil, wrong("known", "%d must be 0 to 2^53: the newest seq whose answer has arrived", body.Known)
	}
	if len(body.Claims) > mostHeld {
		return nil, wrong("claims", "has %d claims, and may have %d", len(body.Claims), mostHeld)
	}
	claims := make([][]claim.Held, c.q.Partitions())
	for i, h := range body.Claims {
		at := "claims[" + strconv.Itoa(i) + "]"
		p, f := placeOf(c.q, at+".id", h.ID)
		if f != nil {
			return nil, f
		}
		if h.Epoch < 1 {
			return nil, wrong(at+".epoch", "%d must be the number that fetch gave", h.Epoch)
		}
		claims[p] = append(claims[p], claim.Held(h))
	}
	answer := beaten{Stops: []stopLine{}}
	var mu sync.Mutex
	err := c.q.Engine().EachPartition(func(p int) error {
		stops, err := claim.Of(c.q).Heartbeat(c, p, c.path("worker"), lease, body.Known, claims[p])
		mu.Lock()
		defer mu.Unlock()
		for _, stop := range stops {
			if stop.OfWorker() {
				answer.Stop = true
			} else {
				answer.Stops = append(answer.Stops, stopLine(stop))
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	c.renews = lease > 0
	return answer, nil
}

// describeBody is the state and the description of a worker, for people.
type describeBody struct {
	State string     `json:"state"`
	About *aboutBody `json:"about,omitempty"`
}

// aboutBody is the description of a worker. It has the same fields as in Go.
type aboutBody struct {
	Name        string         `json:"name,omitempty"`
	Host        string         `json:"host,omitempty"`
	PID         int            `json:"pid,omitempty"`
	Concurrency int            `json:"concurrency,omitempty"`
	Queues      map[string]int `json:"queues,omitempty"` // weights by queue
	Strict      []string       `json:"strict,omitempty"` // queues in strict order, instead of Queues
	Kinds       []string       `json:"kinds,omitempty"`
	Program     string         `json:"program,omitempty"` // differs between programs whose code differs
	StartedAt   int64          `json:"started_at,omitempty"`
}

// describedWorker is the answer to describeWorker.
type describedWorker struct {
	Worker string `json:"worker"`
}

const mostAbout = 4096

func describeWorker(c *call) (any, error) {
	var body describeBody
	if f := c.read(&body); f != nil {
		return nil, f
	}
	state := queue.WorkerState(body.State)
	if state != queue.WorkerRunning && state != queue.WorkerDraining {
		return nil, wrong("state", "must be running or draining")
	}
	about := ""
	if body.About != nil {
		text, err := json.Marshal(body.About)
		if err != nil {
			return nil, err
		}
		if about = string(text); len(about) > mostAbout {
			return nil, wrong("about", "has %d bytes, the limit is %d", len(about), mostAbout)
		}
	}
	exists := false
	var mu sync.Mutex
	err := c.q.Engine().EachPartition(func(p int) error {
		err := claim.Of(c.q).Describe(c, p, c.path("worker"), state, about)
		if errors.Is(err, refusal.ErrNotFound) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		exists = exists || err == nil
		return err
	})
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, fail(404, "not_found", "the worker has no lease: it fetches or sends a heartbeat first").of("worker")
	}
	return describedWorker{c.path("worker")}, nil
}
