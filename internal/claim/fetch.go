package claim

import (
	"context"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/internal/spans"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Ask is a request for tasks.
type Ask struct {
	N      int           // the greatest number of tasks; a call gives at most 500; 0: none
	Seq    int64         // grows with each request of a worker in a partition; a request with the same Seq is a repeat
	Quotas []Quota       // the queues to take from, in order
	Lease  time.Duration // how long the worker keeps its claims without another fetch or heartbeat
	// Elsewhere is the number of tasks that the worker holds in other partitions. A task that may have
	// killed its workers is only given to a worker that holds nothing.
	Elsewhere int
	// Rests is set if the worker has just run such a task: while tasks are in line, it takes no other yet.
	Rests bool
}

// maxSeq is 2^53, the greatest number that Lua and a sorted set hold exactly.
const maxSeq = 1 << 53

// Quota is the number of tasks that one queue can give in the first round. In the second round the
// rest of Ask.N is taken from the queues in order, so that no slot stays idle while a queue has
// tasks.
type Quota struct {
	Queue string
	N     int
}

// Reply is the reply to Fetch or Settle: a verdict for each outcome that was sent, and the
// tasks that were requested.
type Reply struct {
	Verdicts []queue.Verdict
	Claims   []queue.Claim
	// Look is the time after which the worker must fetch again, even if no wake token comes. See
	// More and Stopping.
	Look time.Duration
	// Alone is set if the worker takes nothing beside the task that it holds, or nothing until it holds
	// no task: it may be killed. It should fetch again when a claim has ended, or after Look.
	Alone bool
	// Waits is set if there are tasks for this worker as soon as one of its claims has ended.
	Waits bool
	// Repeat is set if Ask.Seq, or a later one, was already used in the partition. Then Claims holds
	// only those tasks claimed with this Seq that the worker still holds.
	Repeat bool
	// Ended counts the tasks that the call ended because their time was up, instead of claiming or
	// settling them.
	Ended int
	// Errors lists the keys that could not be read or written. The call did everything else.
	Errors []string
}

// More reports whether the requested queues have more tasks, so that the worker should fetch again
// at once.
func (r *Reply) More() bool { return r.Look == 0 }

// Stopping reports whether the worker must stop, because of StopWorker. It gets no more tasks.
func (r *Reply) Stopping() bool { return r.Look < 0 }

// Fetch claims ready tasks for a worker.
func (a Attempts) Fetch(ctx context.Context, partition int, worker string, ask Ask) (Reply, error) {
	if err := a.q.Ready(ctx); err != nil {
		return Reply{}, refusal.Failed("fetch", "", err)
	}
	if err := names.CheckWorker(worker); err != nil {
		return Reply{}, refusal.Failed("fetch", "", err)
	}
	if err := ask.check(); err != nil {
		return Reply{}, refusal.Failed("fetch", "", err)
	}
	start := time.Now()
	reply, report, err := a.q.Engine().CallReported(ctx, partition, "fetch", ask.append([]any{worker})...)
	answers, err := engine.List(reply, err, 2)
	if err != nil {
		return Reply{}, refusal.Failed("fetch", "", err)
	}
	trip := Reply{Ended: len(report.TimedOut)}
	err = trip.readClaims(partition, answers[0], answers[1])
	a.traceReceive(ctx, start, trip.Claims)
	trip.Errors = a.q.Engine().Located("fetch", answers[2:])
	return trip, refusal.Failed("fetch", "", err)
}

// check validates the request, so that an invalid one fails without a call to Redis.
func (a *Ask) check() error {
	switch {
	case a.N < 0:
		return refusal.Invalid("n", "%d must not be negative", a.N)
	case a.Seq < 0 || a.Seq > maxSeq:
		return refusal.Invalid("seq", "%d must be 0 to 2^53: count the requests, or use the time in µs", a.Seq)
	case a.Lease < time.Millisecond:
		return refusal.Invalid("lease", "%v must be at least 1ms", a.Lease)
	}
	return nil
}

func (a *Ask) append(args []any) []any {
	elsewhere := a.Elsewhere
	if a.Rests {
		elsewhere = -1 - elsewhere
	}
	args = append(args, a.Seq, a.N, a.Lease.Milliseconds(), elsewhere)
	for _, quota := range a.Quotas {
		args = append(args, quota.Queue, quota.N)
	}
	return args
}

// claimWords is how many values a claim has in a reply (lua/task/claim.lua).
const claimWords = 5

func (r *Reply) readClaims(partition int, now, answer any) error {
	words, err := engine.List(answer, nil, 1)
	if err != nil || len(words)%claimWords != 1 {
		return engine.Unexpected("claims", answer)
	}
	look := engine.Number(words[0]) // in ms; lua/queue/queue.lua lists the negative values
	r.Repeat, r.Alone, r.Waits = look == -2, look == -3, look == -4
	if look < -1 {
		look = 1000 // positive, since 0 means More and less than 0 means Stopping
	}
	r.Look = time.Duration(look) * time.Millisecond
	at := engine.Instant(now)
	r.Claims = make([]queue.Claim, len(words)/claimWords)
	for i := range r.Claims {
		w := words[1+i*claimWords:]
		c := &r.Claims[i]
		c.ID, c.Epoch, c.Partition, c.Now = engine.Text(w[0]), engine.Number(w[1]), partition, at
		if !readState(c, engine.Text(w[2])) || !readSpec(c, engine.Text(w[3])) {
			return engine.Unexpected("claim", w[:claimWords])
		}
		if payload := engine.Text(w[4]); payload != "" {
			c.Payload = []byte(payload)
		}
	}
	return nil
}

// readState reads the four words of a claim's state.
func readState(c *queue.Claim, words string) bool {
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

// readSpec reads the spec of a task (lua/store/record.lua).
func readSpec(c *queue.Claim, text string) bool {
	s, ok := parseSpec(text)
	if !ok {
		return false
	}
	c.Kind, c.Queue, c.CreatedAt, c.Deadline = s.kind, s.queue, engine.Instant(s.created), engine.Instant(s.final)
	if s.payload != "" {
		c.Payload = []byte(s.payload)
	}
	for name, value := range s.fields {
		switch name {
		case "headers":
			c.Headers = engine.Headers(value)
		case "priority":
			c.Priority = int(engine.Number(value))
		case "max_retries":
			c.MaxRetries = int(engine.Number(value))
		case "retry_expression":
			c.RetryExpression = value
		case "timeout_grace_ms":
			c.TimeoutGrace = time.Duration(engine.Number(value)) * time.Millisecond
		case "warn_percent":
			c.WarnAt = c.CreatedAt.Add(c.Deadline.Sub(c.CreatedAt) / 100 * time.Duration(engine.Number(value)))
		}
	}
	return true
}

// traceReceive makes the span of a claim of tasks.
func (a Attempts) traceReceive(ctx context.Context, start time.Time, claims []queue.Claim) {
	tracer := a.q.Tracer()
	if tracer == nil || len(claims) == 0 {
		return
	}
	tasks := make([]spans.Task, len(claims))
	for i := range claims {
		c := &claims[i]
		tasks[i] = spans.Task{ID: c.ID, Kind: c.Kind, Queue: c.Queue, Headers: c.Headers}
	}
	tracer.Receive(ctx, start, tasks)
}
