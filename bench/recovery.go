package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Holder makes the command of a worker process that calls Hold.
type Holder func(namespace, line string, lease time.Duration) *exec.Cmd

// began is what Hold says when it has a task.
const began = "began"

// Hold works on a queue as a process of its own that is going to be killed: it says
// so when it has a task, and never finishes it.
func Hold(ctx context.Context, rdb redis.UniversalClient, said io.Writer, namespace, line string, lease time.Duration) error {
	q, err := queue.Open(ctx, rdb, queue.Config{Namespace: namespace, Logger: quiet})
	if err != nil {
		return err
	}
	w := worker.New(q, worker.Config{Queues: map[string]int{line: 1}, Lease: lease, NoReaper: true})
	w.HandleRaw("held", func(ctx context.Context, _ []byte) ([]byte, error) {
		fmt.Fprintln(said, began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	return w.Run(ctx)
}

// Recovery measures how long a task stands still when the process that runs it dies:
// worker processes with a task each are killed (SIGKILL), each at a moment of its own
// within an interval between two heartbeats, and the time is taken from the kill to
// the instant at which the task's handler begins elsewhere, on a worker with one
// reaper. It is the rest of the lease, so the lease decides it and not the machine:
// what dies has other slots free, asks for work about once a second, and thereby
// renews its lease. With all slots taken only heartbeats do, each third of a lease,
// and the rest is two thirds of a lease or more.
func Recovery(ctx context.Context, rdb redis.UniversalClient, kills int, lease time.Duration, holder Holder) (Report, error) {
	r := Report{Bench: "recovery"}
	q, err := open(ctx, rdb, 1)
	if err != nil {
		return r, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	held := make(map[string]*exec.Cmd, kills)
	lines := map[string]int{}
	for i := range kills {
		line := fmt.Sprint("held-", i)
		cmd, err := hold(ctx, q, line, holder(q.Namespace(), line, lease))
		if cmd != nil {
			defer end(cmd)
		}
		if err != nil {
			return r, fmt.Errorf("a worker process: %w", err)
		}
		held[line], lines[line] = cmd, 1
	}

	type start struct {
		line string
		at   time.Time
	}
	starts := make(chan start, kills)
	w := worker.New(q, worker.Config{Concurrency: kills, Queues: lines})
	w.HandleRaw("held", func(ctx context.Context, _ []byte) ([]byte, error) {
		starts <- start{worker.Info(ctx).Queue, time.Now()}
		return nil, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	killed := killAll(ctx, held, lease/3)
	var lags []time.Duration
	for give := time.After(lease + 30*time.Second); len(lags) < kills; {
		select {
		case s := <-starts:
			lags = append(lags, s.at.Sub(killed[s.line]))
		case <-give:
			return r, fmt.Errorf("%d of %d tasks ran elsewhere", len(lags), kills)
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
	slices.Sort(lags)
	name := fmt.Sprintf("killed worker, lease %v: its task runs elsewhere after, ", lease)
	r.add(name+"min", lags[0].Seconds(), "s")
	r.add(name+"median", lags[len(lags)/2].Seconds(), "s")
	r.add(name+"max", lags[len(lags)-1].Seconds(), "s")
	stop()
	return r, <-ended
}

// hold enqueues a task, starts a process for it and waits until it has it.
func hold(ctx context.Context, q *queue.Queue, line string, cmd *exec.Cmd) (*exec.Cmd, error) {
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "held", Queue: line}); err != nil {
		return nil, err
	}
	if _, err := cmd.StdinPipe(); err != nil { // it ends by itself when this process does
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var why strings.Builder
	cmd.Stderr = &why
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	first, err := bufio.NewReader(out).ReadString('\n')
	if strings.TrimSpace(first) != began {
		end(cmd)
		return nil, fmt.Errorf("it says %q: %s (%w)", first, why.String(), err)
	}
	return cmd, nil
}

// killAll kills the processes, each at a moment of its own within a span, and
// returns when each was killed.
func killAll(ctx context.Context, held map[string]*exec.Cmd, span time.Duration) map[string]time.Time {
	type moment struct {
		line string
		at   time.Duration
	}
	var moments []moment
	for line := range held {
		moments = append(moments, moment{line, rand.N(span)})
	}
	slices.SortFunc(moments, func(a, b moment) int { return int(a.at - b.at) })
	begin, killed := time.Now(), map[string]time.Time{}
	for _, m := range moments {
		pause(ctx, time.Until(begin.Add(m.at)))
		killed[m.line] = time.Now()
		held[m.line].Process.Kill()
	}
	return killed
}

func end(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}
