package httpapi

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

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
	held := make([][]queue.Held, c.q.Partitions())
	for i, h := range body.Claims {
		at := "claims[" + strconv.Itoa(i) + "]"
		p, f := placeOf(c.q, at+".id", h.ID)
		if f != nil {
			return nil, f
		}
		if h.Epoch < 1 {
			return nil, wrong(at+".epoch", "%d must be the number that fetch gave", h.Epoch)
		}
		held[p] = append(held[p], queue.Held(h))
	}
	answer := beaten{Stops: []stopLine{}}
	var mu sync.Mutex
	err := c.q.Engine().EachPartition(func(p int) error {
		stops, err := c.q.Attempts().Heartbeat(c, p, c.path("worker"), lease, body.Known, held[p])
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

// describeBody is what people see of a worker.
type describeBody struct {
	State string     `json:"state"`
	About *aboutBody `json:"about,omitempty"`
}

// aboutBody is the description that a worker gives of itself, with the same fields as that of a worker in Go.
type aboutBody struct {
	Name        string         `json:"name,omitempty"`
	Host        string         `json:"host,omitempty"`
	PID         int            `json:"pid,omitempty"`
	Concurrency int            `json:"concurrency,omitempty"`
	Queues      map[string]int `json:"queues,omitempty"` // weights by queue
	Strict      []string       `json:"strict,omitempty"` // queues in strict order, instead of Queues
	Kinds       []string       `json:"kinds,omitempty"`
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
	known := false
	var mu sync.Mutex
	err := c.q.Engine().EachPartition(func(p int) error {
		err := c.q.Attempts().Describe(c, p, c.path("worker"), state, about)
		if errors.Is(err, refusal.ErrNotFound) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		known = known || err == nil
		return err
	})
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fail(404, "not_found", "the worker has no lease: it fetches or sends a heartbeat first").of("worker")
	}
	return describedWorker{c.path("worker")}, nil
}
