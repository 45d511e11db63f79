package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Command runs a command for each task. Handle is a worker.Handler.
type Command struct {
	// Path is the program, and Args are its arguments without its name.
	Path string
	Args []string
	// Grace is the time between SIGTERM and SIGKILL, when the command has to stop. 0: it is killed
	// at once. On Windows Ctrl-Break takes the place of SIGTERM.
	Grace time.Duration
	// RetryAfter is the delay of exit code 75, if stderr does not name one. 0: the task's back-off.
	RetryAfter time.Duration
	// MaxResult is how many bytes of stdout are taken as the result.
	MaxResult int
	// Guard ends the commands if this process is killed. Nil: on Linux the kernel ends the command
	// itself, and what the command has started continues. On Windows the system ends both.
	Guard *Guard
	// Now is closed when all commands must end at once. Their tasks are given back.
	Now <-chan struct{}
	// Log gets a line for each attempt that failed.
	Log *slog.Logger

	// Hide names variables of this process that the command does not get.
	Hide []string

	own func() []string // the environment of this process, read once
}

// NewCommand returns a Command for a program with arguments.
func NewCommand(path string, args ...string) *Command {
	c := &Command{Path: path, Args: args, MaxResult: 1 << 20, Log: slog.New(slog.DiscardHandler)}
	c.own = sync.OnceValue(func() []string { return ownEnvironment(c.Hide) })
	return c
}

// Handle runs the command for the task of ctx, and returns what it wrote to stdout.
func (c *Command) Handle(ctx context.Context, payload []byte) ([]byte, error) {
	result, err := c.run(ctx, payload)
	logFailure(ctx, c.Log, err)
	return result, err
}

func (c *Command) run(ctx context.Context, payload []byte) ([]byte, error) {
	if err := checkHeaders(worker.Info(ctx).Headers); err != nil {
		return nil, err
	}
	// The kernel kills the command when the thread that started it ends: see processgroup.Start.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := &bounded{limit: c.MaxResult}
	errs := &tail{}
	g, err := c.start(ctx, payload, out, errs)
	if err != nil {
		return nil, c.startError(ctx, err)
	}
	if c.Guard != nil {
		defer c.Guard.remove(g.ID())
	}
	how := g.await(ctx, c.Grace, c.Now)
	g.finish()
	if how == endedNow {
		return nil, worker.Release(0)
	}
	end := endOf(g.state, errs.text())
	if how == endedByContext {
		end.how = fmt.Sprintf("%v: the command was told to stop (%s)", context.Cause(ctx), end.how)
		if end.code == 0 && !resultCounts(ctx) {
			return nil, end.error()
		}
	}
	if err := c.verdict(end); err != nil {
		return out.bytes(), err
	}
	return out.result("the command wrote", "to stdout: write the result elsewhere, and print where it is")
}

// start starts the command, so that the guard knows of it all the time.
func (c *Command) start(ctx context.Context, payload []byte, stdout, stderr io.Writer) (*group, error) {
	env := slices.Concat(c.own(), environment(ctx))
	if c.Guard == nil {
		return start(c.Path, c.Args, env, payload, stdout, stderr)
	}
	c.Guard.begin()
	g, err := start(c.Path, c.Args, append(env, c.Guard.variable()), payload, stdout, stderr)
	if err != nil {
		c.Guard.fail()
		return nil, err
	}
	c.Guard.add(g.ID())
	return g, nil
}

// resultCounts reports whether the result of a command counts that was told to stop. A command can
// exit with code 0 because it was told to stop, and that does not mean that it is done. But when
// the end of the task's time is near, a task with a TimeoutGrace wants to have what is there. If the time
// has passed, Redis refuses the result.
func resultCounts(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, worker.ErrDeadline) || errors.Is(cause, worker.ErrAttemptTimeout)
}

// startError returns the error for a command that could not be started, with the code that a shell
// uses. The kernel replies EBADF if a new process has no number left for one of its files.
func (c *Command) startError(ctx context.Context, err error) error {
	if errors.Is(err, syscall.EBADF) || lacks(err) {
		return giveBack(ctx, c.Log, "The command cannot be started", err)
	}
	text := fmt.Errorf("cannot start the command: %w", err)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return worker.Fail(127, text)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return worker.Fail(126, text)
	}
	return text
}

// logFailure logs that an attempt failed.
func logFailure(ctx context.Context, log *slog.Logger, err error) {
	if err == nil || worker.VerdictOf(err).Verb == queue.Release {
		return
	}
	job := worker.Info(ctx)
	log.Warn("An attempt failed", "task_id", job.ID, "queue", job.Queue, "kind", job.Kind, "worker", job.Worker, "attempt", job.Attempt, "error", err)
}
