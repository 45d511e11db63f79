//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/command"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// Scripts for tests of stops. Each writes the ids of its processes to files.
const (
	// hangs ends with SIGTERM.
	hangs = `echo $$ >$DIR/pid; exec sleep 60`
	// ignores does not.
	ignores = `trap '' TERM; echo $$ >$DIR/pid; while :; do sleep 0.05; done`
	// forks ends with SIGTERM, and leaves a child that ignores it from its start on.
	forks = `trap '' TERM; (while :; do sleep 0.05; done) & trap - TERM; echo $! >$DIR/child; echo $$ >$DIR/pid; wait`
	// tidies ends with SIGTERM, and its child uses the grace to clean up.
	tidies = `(trap 'sleep 0.1; echo tidy >$DIR/tidy; exit' TERM; echo ready >$DIR/ready; while :; do sleep 0.01; done) & echo $! >$DIR/child; while [ ! -e $DIR/ready ]; do sleep 0.01; done; echo $$ >$DIR/pid; wait`
	// yields exits with code 0 when it is told to stop.
	yields = `trap 'echo partial; exit 0' TERM; echo $$ >$DIR/pid; while :; do sleep 0.01; done`
)

// When the time of an attempt is up, or its task is cancelled, the whole group ends.
func TestACommandThatMustStopEndsWithItsGroup(t *testing.T) {
	t.Parallel()
	attempt := queue.Task{AttemptTimeout: time.Second}
	timedOut := want{status: queue.Failed, reason: queue.ReasonTimeout, errors: []string{"Task exceeded deadline"}}
	for _, row := range []struct {
		claim       string
		task        queue.Task
		taskTimeout time.Duration // of the worker
		script      string
		grace       time.Duration
		cancel      bool
		want        want
		logged      string
		file        string // that the script leaves
	}{
		{claim: "the limit of an attempt", task: attempt, script: hangs, grace: time.Hour, want: timedOut, logged: "attempt exceeded the task's attempt timeout"},
		{claim: "a command that ignores SIGTERM is killed after the grace", task: attempt, script: ignores, grace: 100 * time.Millisecond,
			want: timedOut, logged: "signal 9"},
		{claim: "without a grace it is killed at once", task: attempt, script: ignores, grace: 0,
			want: timedOut, logged: "signal 9"},
		{claim: "a child that ignores SIGTERM is killed after the grace", task: attempt, script: forks, grace: 100 * time.Millisecond, want: timedOut},
		{claim: "a child has the grace, though its parent has ended", task: attempt, script: tidies, grace: time.Hour, want: timedOut, file: "tidy"},
		{claim: "the deadline of the task", task: queue.Task{Timeout: time.Second}, script: forks, grace: 100 * time.Millisecond,
			want: timedOut, logged: "task exceeded its deadline"},
		{claim: "the limit of the worker", taskTimeout: time.Second, script: hangs, grace: time.Hour,
			want: timedOut, logged: "handler exceeded the worker's task timeout: the command was told to stop (signal 15, terminated)"},
		{claim: "a cancelled task", script: forks, grace: 100 * time.Millisecond, cancel: true, want: want{status: queue.Cancelled, reason: queue.ReasonCancelled}},
		{claim: "a cancelled task with a grace", task: queue.Task{CancelGrace: time.Minute}, script: tidies, grace: time.Hour, cancel: true,
			want: want{status: queue.Cancelled, reason: queue.ReasonCancelled}, file: "tidy"},
		{claim: "exit code 0 after SIGTERM is not done", taskTimeout: time.Second, script: yields, grace: time.Hour,
			want: timedOut, logged: "the command was told to stop (exit code 0)"},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			dir := t.TempDir()
			c := s.script(row.script, dir)
			c.Grace = row.grace
			w := worker.New(s.q, worker.Config{TaskTimeout: row.taskTimeout})
			w.HandleRaw("k", c.Handle)
			stop := s.run(w)
			id := s.enqueue(row.task)
			command := pid(t, dir, "pid")
			if row.cancel {
				if _, err := s.q.Cancel(t.Context(), id, "not needed"); err != nil {
					t.Fatal(err)
				}
			}
			row.want.compare(t, s.ended(id))
			gone(t, "the command", command)
			if strings.Contains(row.script, "child") {
				gone(t, "its child", pid(t, dir, "child"))
			}
			if row.file != "" {
				if _, err := os.Stat(filepath.Join(dir, row.file)); err != nil {
					t.Error(err)
				}
			}
			stop()
			if s.logs.Count(row.logged) == 0 {
				t.Errorf("the log does not have %q", row.logged)
			}
		})
	}
}

// When the TimeoutGrace of its task begins, a command gets SIGTERM. What it then writes counts if it
// exits with code 0, and it has time until the deadline, though its own grace is shorter.
func TestACommandHasTheTimeoutGraceOfItsTask(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	c := s.script(`trap 'sleep 0.2; echo saved; exit 0' TERM; echo $$ >$DIR/pid; while :; do sleep 0.01; done`, dir)
	c.Grace = time.Millisecond
	s.work(c.Handle)
	id := s.enqueue(queue.Task{Timeout: 6 * time.Second, TimeoutGrace: time.Minute}) // it is half of the time at most
	want{result: "saved\n"}.compare(t, s.ended(id))
}

// Time is up while the command's output is cut, because it has too much.
func TestACommandThatWritesWithoutEndIsStopped(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.script(`exec yes`, "")
	c.Grace = time.Minute
	s.work(c.Handle)
	want{status: queue.Failed, reason: queue.ReasonTimeout}.compare(t, s.ended(s.enqueue(queue.Task{AttemptTimeout: 100 * time.Millisecond})))
}

// At shutdown a command has ShutdownTimeout to end by itself. Then it must stop, and its task is
// given back and loses no retry.
func TestShutdown(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		claim, script string
		patient       bool
		status        queue.Status
	}{
		{"a command that ends in time is done", `echo $$ >$DIR/pid; while [ ! -e $DIR/go ]; do sleep 0.01; done; echo done`, true, queue.Completed},
		{"a command that does not is stopped, and its task given back", forks, false, queue.Pending},
		{"exit code 0 after SIGTERM is not done", yields, false, queue.Pending},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			dir := t.TempDir()
			c := s.script(row.script, dir)
			c.Grace = 100 * time.Millisecond
			config := worker.Config{ShutdownTimeout: time.Millisecond, ShutdownGrace: time.Minute, NoReaper: true}
			if row.patient {
				config.ShutdownTimeout = time.Minute
			}
			w := worker.New(s.q, config)
			w.HandleRaw("k", c.Handle)
			stop := s.run(w)
			id := s.enqueue(queue.Task{})
			command := pid(t, dir, "pid")
			if row.patient {
				time.AfterFunc(20*time.Millisecond, func() { os.WriteFile(filepath.Join(dir, "go"), nil, 0o644) })
			}
			stop()
			if r := s.record(id); r.Status != row.status || r.Retries != 0 || r.LeaseLosses != 0 {
				t.Errorf("the task is %s, retries %d, lost leases %d, error %q; want %s", r.Status, r.Retries, r.LeaseLosses, r.Error, row.status)
			}
			if running(command) {
				t.Error("the command runs after the worker has ended")
			}
		})
	}
}

// When Now is closed, what runs is killed without a grace, and the task is given back.
func TestNowKillsAtOnce(t *testing.T) {
	t.Parallel()
	for claim, before := range map[string]func(s *stage, stop func(), id string){
		"while it runs": func(*stage, func(), string) {},
		"in its grace": func(s *stage, _ func(), id string) {
			if _, err := s.q.Cancel(s.Context(), id, ""); err != nil {
				s.Fatal(err)
			}
		},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			dir, now := t.TempDir(), make(chan struct{})
			c := s.script(strings.Replace(forks, "echo $$", "trap '' TERM; echo $$", 1), dir)
			c.Grace, c.Now = time.Hour, now
			w := worker.New(s.q, worker.Config{NoReaper: true, ShutdownTimeout: time.Hour})
			w.HandleRaw("k", c.Handle)
			ended := make(chan struct{})
			stop := s.run(w)
			id := s.enqueue(queue.Task{})
			command, child := pid(t, dir, "pid"), pid(t, dir, "child")
			before(s, stop, id)
			go func() { stop(); close(ended) }()
			// The worker takes no more tasks when its Run has begun to end; a task that was given back
			// before that would run again.
			await.Until(t, "the worker drains", func() bool { return drains(s) })
			close(now)
			await.Receive(t, ended, "the end of the worker")
			gone(t, "the command", command)
			gone(t, "its child", child)
			if r := s.record(id); claim == "while it runs" && (r.Status != queue.Pending || r.Retries != 0) {
				t.Errorf("the task is %s, retries %d, want that it was given back", r.Status, r.Retries)
			}
		})
	}
}

// drains reports whether the only worker of a namespace has said that it drains.
func drains(s *stage) bool {
	s.Helper()
	list, err := inspect.Workers(s.Context(), s.q)
	if err != nil {
		s.Fatal(err)
	}
	return len(list) == 1 && list[0].State == queue.WorkerDraining
}

// The guard ends what is left when the pipe from the worker breaks, also a child whose parent the
// kernel has ended, and it is started again when it was killed.
func TestTheGuardEndsWhatIsLeft(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(map[bool]string{false: "the guard was not killed", true: "the guard was killed"}[kill], func(t *testing.T) {
			t.Setenv(guardVariable, "yes")
			s := newStage(t)
			guard, err := command.StartGuard(s.logger(), nil, os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			defer guard.Close()
			dirs := []string{t.TempDir(), t.TempDir()}
			handle := func(dir string) worker.Handler {
				c := s.script(strings.Replace(forks, "echo $$", "trap '' TERM; echo $$", 1), dir)
				c.Grace, c.Guard = time.Hour, guard
				return c.Handle
			}
			w := worker.New(s.q, worker.Config{})
			w.HandleRaw("a", handle(dirs[0]))
			w.HandleRaw("b", handle(dirs[1]))
			s.run(w)
			a := s.enqueue(queue.Task{Kind: "a"})
			first := pid(t, dirs[0], "child")
			if kill {
				old := guard.Pid()
				if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				await.Until(t, "another guard", func() bool { return guard.Pid() != old })
			}
			b := s.enqueue(queue.Task{Kind: "b"})
			second := pid(t, dirs[1], "child")
			guard.Close() // as if this process had ended
			gone(t, "the first child", first)
			gone(t, "the second child", second)
			want{status: queue.Failed, code: 137, reason: queue.ReasonError}.compare(t, s.ended(a))
			want{status: queue.Failed, code: 137, reason: queue.ReasonError}.compare(t, s.ended(b))
		})
	}
}
