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
		v, err := s.killed(ctx, process(lease), lease)
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
		return checkCrash(s.seen, v, other.ID())
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

// victim is the worker that is killed.
type victim struct {
	id    string
	tasks []string // those that it held, the dated ones first
	lease time.Duration
	held  time.Duration // at most this long after its first claim, it was dead
}

// killed starts the process, waits until it has claimed all tasks, and kills it.
func (s *Scene) killed(ctx context.Context, cmd *exec.Cmd, lease time.Duration) (v victim, err error) {
	v.lease = lease
	in, err := cmd.StdinPipe() // the process ends when this one does
	if err != nil {
		return v, err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return v, err
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return v, err
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
	if v.id, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		kill()
		if ctx.Err() != nil {
			return v, context.Cause(ctx)
		}
		return v, fmt.Errorf("the worker process did not start: %s", strings.TrimSpace(errs.String()))
	}
	v.id = strings.TrimSpace(v.id)
	s.Say("a worker runs in the process %d", cmd.Process.Pid)
	tasks := make([]queue.Task, dated+undated)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "job", Timeout: s.Timeout}
		if i >= dated {
			tasks[i].Timeout += time.Minute
		}
	}
	began := time.Now()
	receipts, err := s.Queue.EnqueueAll(ctx, tasks)
	if err != nil {
		return v, err
	}
	for _, r := range receipts {
		v.tasks = append(v.tasks, r.ID)
	}
	if err := s.until(ctx, "the claim of five tasks", func() bool { return len(all(s.seen, "task_started")) == dated+undated }); err != nil {
		return v, err
	}
	if err := kill(); err != nil {
		return v, fmt.Errorf("kill the worker: %w", err)
	}
	v.held = time.Since(began)
	s.Say("killed the process %d (kill -9) with five tasks", cmd.Process.Pid)
	return v, nil
}

// checkCrash returns an error unless the events say that each task ended as promised.
func checkCrash(seen []events.Event, v victim, other string) error {
	for i, id := range v.tasks {
		want, check := "enqueued started timed_out", endedOnTime
		if i >= dated {
			want, check = "enqueued started lease_lost started completed", v.moved
		}
		life, err := lived(seen, id, want)
		if err == nil && life[1].Worker != v.id {
			err = fmt.Errorf("the task %s was claimed by the worker %s, and not by the one that was killed", id, life[1].Worker)
		}
		if err == nil {
			err = check(life, other)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endedOnTime returns an error unless the life of a task ended on its deadline.
func endedOnTime(life []events.Event, _ string) error {
	end := life[2]
	due, err := instantOf(end, "deadline_at")
	if err != nil {
		return err
	}
	return within("the timeout of "+end.TaskID, end.At, due)
}

// moved returns an error unless the other worker got the task when the lease of the first one had ended, and completed it.
func (v victim) moved(life []events.Event, other string) error {
	id, claimed, lost, again, done := life[0].TaskID, life[1], life[2], life[3], life[4]
	if again.Worker != other || done.Worker != other || done.Epoch != 2 {
		return fmt.Errorf("the task %s was completed by the worker %s with claim %d, and not by the other worker with claim 2", id, done.Worker, done.Epoch)
	}
	if late := lost.At.Sub(claimed.At.Add(v.lease + v.held)); late > promised {
		return fmt.Errorf("the task %s was given back %v late, and must be within %v", id, late, promised)
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
