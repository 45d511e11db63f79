package command

import (
	"context"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/worker"
)

// fact is one thing that a handler is told about its task. The name is one of docs/reference/names.md, written as in an HTTP
// header, without the prefix Curfew.
type fact struct{ name, value string }

// facts returns the facts about the task of ctx that its command or URL receives, without those that the task lacks.
func facts(ctx context.Context) []fact {
	job := worker.Info(ctx)
	list := []fact{
		{"Task-Id", job.ID},
		{"Kind", job.Kind},
		{"Queue", job.Queue},
		{"Attempt", strconv.Itoa(job.Attempt)},
		{"Max-Retries", strconv.Itoa(job.MaxRetries)},
		{"Epoch", strconv.FormatInt(job.Epoch, 10)},
		{"Worker", job.Worker},
	}
	if !job.Deadline.IsZero() {
		at := job.ClaimedAt.Add(job.Deadline.Sub(job.ReceivedAt)) // by the clock of Redis
		list = append(list, fact{"Deadline-At", strconv.FormatInt(at.UnixMilli(), 10)})
	}
	if end, ok := ctx.Deadline(); ok {
		list = append(list, fact{"Left-Ms", strconv.FormatInt(max(time.Until(end).Milliseconds(), 0), 10)})
	}
	return list
}

// everyFact has the names of all facts.
var everyFact = []string{"Task-Id", "Kind", "Queue", "Attempt", "Max-Retries", "Epoch", "Worker", "Deadline-At", "Left-Ms"}

// traceHeaders are the headers of a task that a handler gets under their own names, as tracing
// libraries expect.
var traceHeaders = []string{"traceparent", "tracestate", "baggage"}
