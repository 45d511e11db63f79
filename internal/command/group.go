package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/processgroup"
	"github.com/curfew-dev/curfew/worker"
)

// group is a command with all processes that it has started, and its output.
type group struct {
	*processgroup.Group
	ended  chan struct{} // closed when the command has ended
	state  *os.ProcessState
	pipes  []io.Closer    // this process's ends of the pipes
	copies sync.WaitGroup // the goroutines that read and write the pipes
}

// start starts a command. Its stdin is the payload. What it writes goes to stdout and stderr.
func start(path string, args, env []string, payload []byte, stdout, stderr io.Writer) (*group, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = env
	g := &group{ended: make(chan struct{})}
	stdin, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	errs, err3 := cmd.StderrPipe()
	cmd.Err = cmp.Or(cmd.Err, err1, err2, err3)
	var err error
	if g.Group, err = processgroup.Start(cmd); err != nil { // the pipes are closed, also if only some could be made
		return nil, err
	}
	g.pipes = []io.Closer{stdin, out, errs}
	g.copies.Go(func() {
		stdin.Write(payload) // a command need not read its input
		stdin.Close()
	})
	g.copies.Go(func() { io.Copy(stdout, out) })
	g.copies.Go(func() { io.Copy(stderr, errs) })
	go func() {
		// Not cmd.Wait: it waits for the pipes, which what the command has started may hold.
		g.state, _ = cmd.Process.Wait()
		close(g.ended)
	}()
	return g, nil
}

// ending says why a command has ended.
type ending int

const (
	endedItself    ending = iota
	endedByContext        // it was told to stop
	endedNow              // it was killed, because everything must end at once
)

// await waits for the end of the command. When ctx ends, the group is asked to stop, and after the
// grace killed. When now is closed, the group is killed.
func (g *group) await(ctx context.Context, grace time.Duration, now <-chan struct{}) ending {
	select {
	case <-g.ended:
		return endedItself
	case <-now:
		return endedNow
	case <-ctx.Done():
	}
	g.Stop()
	timer := time.NewTimer(graceOf(ctx, grace))
	defer timer.Stop()
	for pause := time.Millisecond; g.alive(); pause = min(2*pause, 50*time.Millisecond) {
		select {
		case <-time.After(pause): // nothing notifies this process when the last of the group has ended
		case <-timer.C:
			return endedByContext
		case <-now:
			return endedNow
		}
	}
	return endedByContext
}

// graceOf returns how long a command that must stop can continue. The command of a task with a
// TimeoutGrace has at least that. All others have the grace.
func graceOf(ctx context.Context, grace time.Duration) time.Duration {
	job, cause := worker.Info(ctx), context.Cause(ctx)
	until := job.Deadline
	if errors.Is(cause, worker.ErrAttemptTimeout) {
		until = job.AttemptDeadline
	} else if !errors.Is(cause, worker.ErrDeadline) {
		return grace
	}
	return max(grace, time.Until(until))
}

// lastRead is how long the output of a command is still read after its group was killed. A process
// that has left the group can hold the pipe open.
const lastRead = 500 * time.Millisecond

// finish kills what is left of the group, and returns when the command's output is read.
func (g *group) finish() {
	g.Kill()
	<-g.ended
	go g.Release()
	timer := time.AfterFunc(lastRead, g.close)
	g.copies.Wait()
	timer.Stop()
	g.close()
}

func (g *group) close() {
	for _, pipe := range g.pipes {
		pipe.Close()
	}
}

// alive reports whether a process of the group runs.
func (g *group) alive() bool {
	select {
	case <-g.ended:
		return g.Alive()
	default:
		return true
	}
}
