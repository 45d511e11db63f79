package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// The tasks of Crash: dated tasks have a deadline before the lease of the dead worker ends, the others have time.
const (
	dated   = 3
	undated = 2
)

// leaseAfter is how much longer the lease of the worker is than the deadlines.
const leaseAfter = time.Second

// Crash kills a worker process that holds five tasks. It returns an error unless the tasks with a deadline end on it, and another
// worker completes the others. process returns the command of a process that runs Victim in the scene's namespace.
func Crash(ctx context.Context, s *Scene, process func(lease time.Duration) *exec.Cmd) (err error) {
	if s.at, err = Now(ctx, s.Queue); err != nil {
		return err
	}
	lease := s.Timeout + leaseAfter
	return Together(ctx, func(ctx context.Context) error {
		victim, err := s.killed(ctx, process(lease))
		if err != nil {
			return err
		}
		other := s.worker(worker.Config{Name: "demo-other"})
		other.HandleRaw("job", func(context.Context, []byte) ([]byte, error) { return []byte(`"done"`), nil })
		err = Together(ctx, func(ctx context.Context) error {
			s.Say("another worker runs; it gets the tasks that have time left when the lease of the dead one ends, in %v", lease)
			if err := s.until(ctx, "the end of all tasks", s.allEnded); err != nil {
				return err
			}
			return s.audit(ctx)
		}, other.Run)
		if err != nil {
			return err
		}
		return checkCrash(s.seen, victim, other.ID())
	}, s.reaper().Run)
}

func (s *Scene) allEnded() bool {
	n := 0
	for _, e := range s.seen {
		if terminal(e) {
			n++
		}
	}
	return n >= dated+undated
}

// killed starts the process, waits until it has claimed all tasks, and kills it. It returns the worker's id.
func (s *Scene) killed(ctx context.Context, cmd *exec.Cmd) (id string, err error) {
	in, err := cmd.StdinPipe() // the process ends when this one does
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return "", err
	}
	alive := true
	kill := func() error {
		if !alive {
			return nil
		}
		alive = false
		err := cmd.Process.Kill()
		cmd.Wait()
		return err
	}
	defer kill()
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	if id, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		kill()
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("the worker process did not start: %s", strings.TrimSpace(errs.String()))
	}
	id = strings.TrimSpace(id)
	s.Say("a worker runs in the process %d", cmd.Process.Pid)
	tasks := make([]queue.Task, dated+undated)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "job", Timeout: s.Timeout}
		if i >= dated {
			tasks[i].Timeout += time.Minute
		}
	}
	if _, err := s.Queue.EnqueueAll(ctx, tasks); err != nil {
		return "", err
	}
	if err := s.until(ctx, "the claim of five tasks", func() bool { return len(all(s.seen, "task_started")) == dated+undated }); err != nil {
		return "", err
	}
	if err := kill(); err != nil {
		return "", fmt.Errorf("kill the worker: %w", err)
	}
	s.Say("killed the process %d (kill -9) with five tasks", cmd.Process.Pid)
	return id, nil
}

// checkCrash returns an error unless the events say that each task ended as promised.
func checkCrash(seen []events.Event, victim, other string) error {
	ends, err := endsOf(seen)
	if err != nil {
		return err
	}
	timedOut, moved := 0, 0
	for id, e := range ends {
		switch e.Kind {
		case "task_timed_out":
			due, err := instantOf(e, "deadline_at")
			if err != nil {
				return err
			}
			if err := within("the timeout of "+id, e.At, due); err != nil {
				return err
			}
			timedOut++
		case "task_completed":
			if e.Worker != other || e.Epoch < 2 {
				return fmt.Errorf("the task %s was completed by the worker %s with claim %d", id, e.Worker, e.Epoch)
			}
			moved++
		default:
			return fmt.Errorf("the task %s ended with %s", id, e.Kind)
		}
	}
	if timedOut != dated || moved != undated {
		return fmt.Errorf("%d tasks timed out and %d were completed elsewhere, want %d and %d", timedOut, moved, dated, undated)
	}
	claims := 0
	for _, e := range all(seen, "task_started") {
		if e.Worker == victim {
			claims++
		}
	}
	if lost := len(all(seen, "task_lease_lost")); claims != dated+undated || lost != undated {
		return fmt.Errorf("the killed worker claimed %d tasks and %d were given back, want %d and %d", claims, lost, dated+undated, undated)
	}
	return nil
}

// Victim runs the worker that Crash kills. It writes its id to out, and runs until in ends or ctx does.
func Victim(ctx context.Context, q *queue.Queue, lease time.Duration, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &Scene{Queue: q}
	w := s.worker(worker.Config{Name: "demo-killed", Lease: lease, Concurrency: dated + undated})
	w.HandleRaw("job", func(ctx context.Context, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	go func() {
		io.Copy(io.Discard, in)
		stop()
	}()
	if _, err := fmt.Fprintln(out, w.ID()); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return w.Run(ctx)
}
