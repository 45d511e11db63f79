package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Holder makes the command of a worker process that calls Hold with the System of that
// name. The process must end when its standard input does.
type Holder func(system, line string) *exec.Cmd

// began is what Hold says when it has a task.
const began = "began"

// Hold works on a queue as a process of its own that is going to be killed: it says
// so when it has a task, and never finishes it.
func Hold(ctx context.Context, s System, at Place, line string, said io.Writer) error {
	recoverer, ok := s.(Recoverer)
	if !ok {
		return fmt.Errorf("%s is no Recoverer", s.Name())
	}
	if err := s.Open(ctx, at); err != nil {
		return err
	}
	defer s.Close()
	return recoverer.Hold(ctx, line, func() { fmt.Fprintln(said, began) })
}

// Recovery measures how long a task stands still when the process that runs it dies:
// worker processes with a task each are killed (SIGKILL), each at a moment of its own
// within an interval between two heartbeats, and the time is taken from the kill to
// the instant at which the task's handler begins elsewhere, on a worker with one
// reaper. It is the rest of the lease, so the lease decides it and not the machine:
// what dies has other slots free, asks for work about once a second, and thereby
// renews its lease. With all slots taken only heartbeats do, each third of a lease,
// and the rest is two thirds of a lease or more.
func Recovery(ctx context.Context, rdb redis.UniversalClient, at Place, kills int, lease time.Duration, holder Holder) (Report, error) {
	r := Report{Bench: "recovery"}
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return r, err
	}
	s := &curfewSide{lease: lease}
	if err := s.Open(ctx, at); err != nil {
		return r, err
	}
	defer s.Close()
	within := lease + 30*time.Second
	lags, err := standstill(ctx, s, RecoveryLoad{Kills: kills, Within: within, Holder: holder})
	if err != nil {
		return r, err
	}
	slices.Sort(lags)
	if lags[len(lags)-1] >= within {
		return r, fmt.Errorf("a task did not run elsewhere in %v", within)
	}
	name := fmt.Sprintf("killed worker, lease %v: its task runs elsewhere after, ", lease)
	r.add(name+"min", lags[0].Seconds(), "s")
	r.add(name+"median", lags[len(lags)/2].Seconds(), "s")
	r.add(name+"max", lags[len(lags)-1].Seconds(), "s")
	return r, nil
}

// start is when a task's handler began elsewhere.
type start struct {
	line string
	at   time.Time
}

// standstill kills worker processes with a task each, and returns how long each task took
// to run elsewhere, load.Within for those that took longer.
func standstill(ctx context.Context, s Recoverer, load RecoveryLoad) ([]time.Duration, error) {
	held, err := holdAll(ctx, s, load)
	defer func() {
		for _, cmd := range held {
			end(cmd)
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("a worker process: %w", err)
	}
	starts := make(chan start, 10*load.Kills) // some may run more than twice
	crew, err := s.Take(ctx, linesOf(load), func(line string) {
		select {
		case starts <- start{line, time.Now()}:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	killed := killAll(ctx, held, s.Interval())
	lags, err := awaitStarts(ctx, killed, starts, crew.Failed, load.Within)
	if stopped := crew.Stop(); err == nil {
		err = stopped
	}
	return lags, err
}

// linesOf are the names of the queues, one for each process that is killed.
func linesOf(load RecoveryLoad) []string {
	lines := make([]string, load.Kills)
	for i := range lines {
		lines[i] = fmt.Sprint("held-", i)
	}
	return lines
}

// holdAll starts the processes, and returns when each has its task.
func holdAll(ctx context.Context, s Recoverer, load RecoveryLoad) (map[string]*exec.Cmd, error) {
	held := map[string]*exec.Cmd{}
	name := s.(System).Name()
	for _, line := range linesOf(load) {
		if err := s.Put(ctx, line); err != nil {
			return held, err
		}
		cmd := load.Holder(name, line)
		if err := hold(ctx, cmd); err != nil {
			return held, err
		}
		held[line] = cmd
	}
	return held, nil
}

// awaitStarts is how long after its kill each task began elsewhere.
func awaitStarts(ctx context.Context, killed map[string]time.Time, starts <-chan start, failed <-chan error, within time.Duration) ([]time.Duration, error) {
	var lags []time.Duration
	give := time.After(within)
	for len(killed) > 0 {
		select {
		case s := <-starts:
			if at, waits := killed[s.line]; waits {
				lags = append(lags, min(s.at.Sub(at), within))
				delete(killed, s.line)
			}
		case <-give:
			for line := range killed {
				lags = append(lags, within)
				delete(killed, line)
			}
		case err := <-failed:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return lags, nil
}

// hold starts a process and waits until it has its task.
func hold(ctx context.Context, cmd *exec.Cmd) error {
	if _, err := cmd.StdinPipe(); err != nil { // it ends by itself when this process does
		return err
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var why strings.Builder
	cmd.Stderr = &why
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	first := make([]byte, len(began)+1)
	n, err := io.ReadFull(said, first)
	if strings.TrimSpace(string(first[:n])) != began {
		end(cmd)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("it says %q: %s (%w)", first[:n], why.String(), err)
	}
	return nil
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
