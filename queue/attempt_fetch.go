package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/refusal"
)

// Ask says what a worker wants to be handed.
type Ask struct {
	N      int           // how many at the most, and 500 of them a call; 0: nothing
	Seq    int64         // grows with each ask of a worker in a partition; the same again is a repeat
	Quotas []Quota       // in order
	Lease  time.Duration // the worker is alive that long without another word
}

// Quota is what a queue may give in the first round. What is left of Ask.N then is
// taken from the queues in order.
type Quota struct {
	Queue string
	N     int
}

// Claim is a task that a worker holds. Its instants are on the clock of Redis, as
// Now is, which says when it was handed out.
type Claim struct {
	ID, Queue, Kind string
	Partition       int
	Epoch           int64
	Payload         []byte
	Headers         map[string]string
	Priority        int
	Retries         int
	MaxRetries      int
	LeaseLosses     int
	RetryExpression string // asked by the worker when an attempt fails: see Outcome.Retry
	CreatedAt       time.Time
	Deadline        time.Time // zero: none; an ancestor's, if that is sooner
	AttemptDeadline time.Time // zero: none sooner than Deadline
	TimeoutGrace    time.Duration
	WarnAt          time.Time // when to warn that the deadline is near; zero: never
	Journal         bool      // it is an agent that ran before, and remembers something
	Now             time.Time
}

// Attempt is which run of the handler this is: 1 for the first. Being given back
// does not count.
func (c *Claim) Attempt() int { return c.Retries + 1 }

// Reply is what came back from Redis: a verdict for each outcome that went, and
// the tasks that were asked for.
type Reply struct {
	Verdicts []Verdict
	Claims   []Claim
	// Look is when to fetch again, even if no wake token comes: see More and Stopping.
	Look time.Duration
	// Ended is how many tasks timed out in the call, instead of being handed out or settled.
	Ended int
	// Errors are keys that could not be worked with. Everything else was done.
	Errors []string
}

// More tells whether the queues asked hold more.
func (r *Reply) More() bool { return r.Look == 0 }

// Stopping tells whether the worker is asked to stop (StopWorker): it gets nothing any more.
func (r *Reply) Stopping() bool { return r.Look < 0 }

// Fetch takes ready tasks for a worker.
func (a Attempts) Fetch(ctx context.Context, partition int, worker string, ask Ask) (Reply, error) {
	if err := a.q.ready(ctx); err != nil {
		return Reply{}, refusal.Failed("fetch", "", err)
	}
	if err := ask.check(worker); err != nil {
		return Reply{}, refusal.Failed("fetch", "", err)
	}
	reply, err := a.q.engine.Call(ctx, partition, "fetch", ask.append([]any{worker})...)
	answers, err := engine.List(reply, err, 3)
	if err != nil {
		return Reply{}, refusal.Failed("fetch", "", err)
	}
	var trip Reply
	if err = trip.readClaims(partition, answers[0], answers[1]); err == nil {
		err = trip.readTold(answers[2])
	}
	trip.Errors = a.q.engine.Located("fetch", answers[3:])
	return trip, refusal.Failed("fetch", "", err)
}

// check refuses what no worker can mean.
func (a *Ask) check(worker string) error {
	switch {
	case worker == "" || strings.ContainsAny(worker, " \n"):
		return refusal.Invalid("worker", "%q must be one word", refusal.Clip(worker))
	case a.N < 0:
		return refusal.Invalid("n", "%d must not be negative", a.N)
	case a.Seq < 0 || a.Seq > maxSpan:
		return refusal.Invalid("seq", "%d must be 0 to 2^53: count the asks, or take the time in µs", a.Seq)
	case a.Lease < time.Millisecond:
		return refusal.Invalid("lease", "%v must be at least 1ms", a.Lease)
	}
	return nil
}

func (a *Ask) append(args []any) []any {
	args = append(args, a.Seq, a.N, a.Lease.Milliseconds())
	for _, quota := range a.Quotas {
		args = append(args, quota.Queue, quota.N)
	}
	return args
}

// claimWords is how many values a claim has (lua/task/parcels.lua).
const claimWords = 5

func (r *Reply) readClaims(partition int, now, answer any) error {
	words, err := engine.List(answer, nil, 1)
	if err != nil || len(words)%claimWords != 1 {
		return fmt.Errorf("unexpected claims %.100v", answer)
	}
	r.Look = time.Duration(engine.Number(words[0])) * time.Millisecond
	at := engine.Instant(now)
	r.Claims = make([]Claim, len(words)/claimWords)
	for i := range r.Claims {
		w := words[1+i*claimWords:]
		c := &r.Claims[i]
		c.ID, c.Epoch, c.Partition, c.Now = engine.Text(w[0]), engine.Number(w[1]), partition, at
		if !c.readState(engine.Text(w[2])) || !c.readSpec(engine.Text(w[3])) {
			return fmt.Errorf("unexpected claim of %s: %.100q, %.100q", c.ID, engine.Text(w[2]), engine.Text(w[3]))
		}
		if payload := engine.Text(w[4]); payload != "" {
			c.Payload = []byte(payload)
		}
	}
	return nil
}

// toldWords is how many values say what happened to a task (lua/store/tell.lua).
const toldWords = 5

func (r *Reply) readTold(answer any) error {
	words, err := engine.Elements(answer, nil)
	if err != nil || len(words)%toldWords != 0 {
		return fmt.Errorf("unexpected answer %.100v of what else happened", answer)
	}
	for i := 0; i < len(words); i += toldWords {
		if engine.Text(words[i]) == "timed_out" {
			r.Ended++
		}
	}
	return nil
}

// readState reads the four words of a claim's state.
func (c *Claim) readState(words string) bool {
	if words == "- - - -" {
		return true
	}
	w := strings.Split(words, " ")
	if len(w) != 4 {
		return false
	}
	c.AttemptDeadline, c.Retries, c.LeaseLosses, c.Journal = engine.Instant(w[0]), int(engine.Number(w[1])), int(engine.Number(w[2])), w[3] != "-"
	return true
}

// readSpec reads the spec of a task (lua/store/parse.lua).
func (c *Claim) readSpec(spec string) bool {
	s, ok := parseSpec(spec)
	if !ok {
		return false
	}
	c.Kind, c.Queue, c.CreatedAt, c.Deadline = s.kind, s.queue, engine.Instant(s.created), engine.Instant(s.final)
	if s.payload != "" {
		c.Payload = []byte(s.payload)
	}
	for name, value := range s.more {
		switch name {
		case "headers":
			c.Headers = readHeaders(value)
		case "priority":
			c.Priority = count(value)
		case "max_retries":
			c.MaxRetries = count(value)
		case "retry_expression":
			c.RetryExpression = value
		case "timeout_grace_ms":
			c.TimeoutGrace = span(value)
		case "warn_percent":
			c.WarnAt = c.CreatedAt.Add(c.Deadline.Sub(c.CreatedAt) / 100 * time.Duration(count(value)))
		}
	}
	return true
}

// Answers asks a partition for nothing, and returns nil if it answers. A worker tells by it
// a call that is large from a partition that hangs.
func (a Attempts) Answers(ctx context.Context, partition int) error {
	if err := a.q.ready(ctx); err != nil {
		return refusal.Failed("answers", "", err)
	}
	_, err := a.q.engine.Call(ctx, partition, "read")
	return refusal.Failed("answers", "", err)
}
