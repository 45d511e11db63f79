package worker

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
)

// logError logs an error whose end the worker cannot notice: once a minute for each partition, and
// less often while it lasts.
func (w *Worker) logError(worker string, partition int, message string, err error) {
	if errors.Is(err, context.Canceled) || !w.errorLog.allow(strconv.Itoa(partition)) {
		return
	}
	attributes := []any{"worker", worker, "partition", partition, "error", err}
	w.log.Error(message, attributes...)
}

// logKeys logs the keys that a call could not use. The call has done everything else.
func (w *Worker) logKeys(worker string, partition int, keys []string) {
	if len(keys) > 0 {
		w.logError(worker, partition, "A call found keys in Redis that it cannot use; everything else was done", errors.New(strings.Join(keys, "; ")))
	}
}

// logDiverged counts an agent that this program cannot replay, and logs the first of each kind, and
// then as logUnknownKind.
func (w *Worker) logDiverged(a *attempt) {
	w.counts.diverged.Add(1)
	if c := &a.claim; w.kindLog.allow("diverged " + c.Kind) {
		w.log.Error("This program cannot replay an agent: the agent is given back for a program that can", "kind", c.Kind,
			"queue", c.Queue, "task_id", c.ID, "worker", a.worker, "error", a.outcome.Error)
	}
}

// logUnknownKind counts a task whose kind has no handler, and logs each such kind once a minute,
// and less often while it lasts.
func (w *Worker) logUnknownKind(worker string, c *queue.Claim) {
	w.counts.unknown.Add(1)
	if w.kindLog.allow(c.Kind) {
		w.log.Warn("A task's kind has no handler here: the task is given back", "kind", c.Kind, "queue", c.Queue, "task_id", c.ID, "worker", worker)
	}
}
