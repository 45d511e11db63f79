package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Holder returns the command of a worker process that calls Hold, with the System of that name
// and that queue. The process must exit when its standard input is closed.
type Holder func(system, line string) *exec.Cmd

// began is the line that Hold writes when it has a task.
const began = "began"

// Hold claims a task of a queue, writes a line to said, and never finishes the task. It runs in
// a process that a measurement kills. It fails if s is not a Recoverer.
func Hold(ctx context.Context, s System, at Place, line string, said io.Writer) error {
	recoverer, ok := s.(Recoverer)
	if !ok {
		return fmt.Errorf("%s is not a Recoverer", s.Name())
	}
	if err := s.Open(ctx, at); err != nil {
		return err
	}
	defer s.Close()
	return recoverer.Hold(ctx, line, func() { fmt.Fprintln(said, began) })
}

// Recovery measures how long a task waits when the process that runs it dies. Several worker
// processes have one task each. Each is killed (SIGKILL) at a random instant between two
// heartbeats. The figure is the time from the kill until the task's handler begins in another
// worker, which has one reaper.
//
// That time is the rest of the lease, so it depends on the lease and not on the machine. The
// killed workers have free slots, so they fetch about once a second, which renews the lease. A
// worker without free slots only renews its lease by heartbeats, every third of a lease. The
// rest of its lease is then two thirds of the lease or more.
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
		return r, fmt.Errorf("a task did not run again within %v", within)
	}
	name := fmt.Sprintf("killed worker, lease %v: its task runs elsewhere after, ", lease)
	r.add(name+"min", lags[0].Seconds(), "s")
	r.add(name+"median", lags[len(lags)/2].Seconds(), "s")
	r.add(name+"max", lags[len(lags)-1].Seconds(), "s")
	return r, nil
}

// start is when a task's handler began in another worker.
type start struct {
	line string
	at   time.Time
}

// standstill kills worker processes with one task each, and returns how long each task took to run
// again. A task that took longer than load.Within counts as that.
func standstill(ctx context.Context, s Recoverer, load RecoveryLoad) ([]time.Duration, error) {
	processes, err := holdAll(ctx, s, load)
	defer func() {
		for _, cmd := range processes {
			end(cmd)
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("a worker process: %w", err)
	}
	starts := make(chan start, 10*load.Kills) // a task can run more than twice
	crew, err := s.Take(ctx, linesOf(load), func(line string) {
		select {
		case starts <- start{line, time.Now()}:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	killed := killAll(ctx, processes, s.Interval())
	lags, err := awaitStarts(ctx, killed, starts, crew.Failed, load.Within)
	if stopped := crew.Stop(); err == nil {
		err = stopped
	}
	return lags, err
}

// linesOf returns the names of the queues, one for each process to kill.
func linesOf(load RecoveryLoad) []string {
	lines := make([]string, load.Kills)
	for i := range lines {
		lines[i] = fmt.Sprint("held-", i)
	}
	return lines
}

// holdAll starts the processes, and returns them by queue when each has its task.
func holdAll(ctx context.Context, s Recoverer, load RecoveryLoad) (map[string]*exec.Cmd, error) {
	processes := map[string]*exec.Cmd{}
	name := s.(System).Name()
	for _, line := range linesOf(load) {
		if err := s.Put(ctx, line); err != nil {
			return processes, err
		}
		cmd := load.Holder(name, line)
		if err := hold(ctx, cmd); err != nil {
			return processes, err
		}
		processes[line] = cmd
	}
	return processes, nil
}

// awaitStarts returns how long after its kill each task began again.
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
	if _, err := cmd.StdinPipe(); err != nil { // the process exits when this one does
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var messages strings.Builder
	cmd.Stderr = &messages
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	first := make([]byte, len(began)+1)
	n, err := io.ReadFull(output, first)
	if strings.TrimSpace(string(first[:n])) != began {
		end(cmd)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(fmt.Errorf("its first line is %q, want %q; stderr: %s", first[:n], began, messages.String()), err)
	}
	return nil
}

// killAll kills each process at a random instant within a span, and returns the instant of
// each kill.
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

// RecoveryLoad adjusts RecoveryTrial. Holder must be set.
type RecoveryLoad struct {
	// Kills is how many worker processes are killed. The default is 10.
	Kills int
	// Within is how long to wait for the tasks after the last kill. A task that takes longer
	// counts as this, and is shown as "> 240". The default is 4 minutes.
	Within time.Duration
	// Holder returns the commands of the processes.
	Holder Holder
}

// RecoveryTrial measures how long a task waits when the process that runs it is killed (SIGKILL).
// The time ends when the task's handler begins in a worker of this process, which runs already.
// Each kill is at a random instant within the System's interval. Figures: recovery_min,
// recovery_p50, recovery_max.
func RecoveryTrial(l RecoveryLoad) Trial {
	l.Kills, l.Within = cmp.Or(l.Kills, 10), cmp.Or(l.Within, 4*time.Minute)
	can := func(s System) bool { _, ok := s.(Recoverer); return ok }
	t := Trial{bench: "recovery", unit: "s", runs: 1, load: count(l.Kills, "kill") + fmt.Sprintf(", waiting %v at the most", l.Within), bound: l.Within.Seconds(), sizes: Sizes{Kills: l.Kills}}
	t.turns = []turn{{
		figures: []figure{
			{"recovery_min", "kill -9 until its task runs elsewhere, min", can},
			{"recovery_p50", "kill -9 until its task runs elsewhere, p50", can},
			{"recovery_max", "kill -9 until its task runs elsewhere, max", can},
		},
		run: func(ctx context.Context, s System) ([]float64, error) {
			lags, err := standstill(ctx, s.(Recoverer), l)
			if err != nil {
				return nil, err
			}
			slices.Sort(lags)
			return []float64{lags[0].Seconds(), percentile(lags, 0.5).Seconds(), lags[len(lags)-1].Seconds()}, nil
		},
	}}
	return t.complete()
}
