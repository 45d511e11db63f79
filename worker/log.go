package worker

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// logError logs an error of a partition. It does not log further errors of the partition within a
// minute.
func (w *Worker) logError(partition int, what string, err error, more ...any) {
	if errors.Is(err, context.Canceled) || !w.errorLog.allow(strconv.Itoa(partition)) {
		return
	}
	w.log.Error(what, append([]any{"partition", partition, "error", err}, more...)...)
}

// callFailed logs an error after which the worker tries again. If the client is closed or the namespace has a
// newer version, it ends Run.
func (w *Worker) callFailed(partition int, what string, err error, more ...any) {
	if errors.Is(err, refusal.ErrClosed) || errors.Is(err, refusal.ErrNewer) {
		w.fail(err)
		return
	}
	w.logError(partition, what, err, more...)
}

// logKeys logs the keys that a call could not use. The call has done everything else.
func (w *Worker) logKeys(partition int, keys []string) {
	if len(keys) > 0 {
		w.logError(partition, "A call found keys in Redis that it cannot use; everything else was done", errors.New(strings.Join(keys, "; ")))
	}
}

// logUnknownKind counts a task whose kind has no handler, and logs each such kind once a minute.
func (w *Worker) logUnknownKind(c *queue.Claim) {
	w.counts.unknown.Add(1)
	if w.kindLog.allow(c.Kind) {
		w.log.Warn("A task's kind has no handler here: the task is given back", "kind", c.Kind, "queue", c.Queue, "task_id", c.ID)
	}
}
