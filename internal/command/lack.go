package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/curfew-dev/curfew/worker"
)

// shortage is how long a task waits that is given back because this process or the system lacks something.
const shortage = time.Second

// lacks reports whether an error says that too many files are open, too many processes run, or there is
// not enough memory.
func lacks(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.ENOBUFS}, func(lack error) bool { return errors.Is(err, lack) })
}

// giveBack logs what failed because a resource is exhausted, and returns the error that gives the task back.
// The task did not fail: a failure would use up its retries within a second.
func giveBack(ctx context.Context, log *slog.Logger, what string, err error) error {
	info := worker.Info(ctx)
	log.Error("An attempt lacks files, processes or memory, and its task is given back: raise the limits, or lower --concurrency",
		"task_id", info.ID, "queue", info.Queue, "kind", info.Kind, "worker", info.Worker, "error", fmt.Errorf("%s now: %w", what, err))
	return worker.Release(shortage)
}
