package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// deafVariable makes this test binary a command that does not end when it is interrupted.
const deafVariable = "CURFEW_TEST_DEAF"

func deaf() {
	ctx := app.UntilSignalled()
	fmt.Println("runs")
	<-ctx.Done()
	fmt.Println("interrupted")
	select {}
}

func TestMain(m *testing.M) {
	if os.Getenv(deafVariable) != "" {
		deaf()
	}
	if os.Getenv(commandVariable) != "" {
		main()
	}
	// No test reads the settings of the user.
	for _, name := range slices.Concat(app.RedisVariables, app.NamespaceVariables, []string{"CURFEW_CONFIG"}) {
		os.Unsetenv(name)
	}
	settings, err := os.MkdirTemp("", "curfew-settings")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CONFIG_HOME", settings)
	os.Setenv(commandVariable, "1") // a command that runs in this process may start its program again
	app.QuietClient()               // as Main does
	debug.SetGCPercent(400)         // thousands of commands leave garbage here
	redistest.AtOnce(6)             // most tests that are parallel wait
	redistest.Main(m)
	os.RemoveAll(settings)
}

// workStage is a namespace for processes that run `curfew work`.
type workStage struct {
	*testing.T
	q      *queue.Queue
	url    string
	folder string // $DIR of the commands
}

func newWorkStage(t *testing.T) *workStage {
	t.Helper()
	server := redistest.Shared(t)
	q := queuetest.Open(t, server.Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	return &workStage{t, q, "redis://" + server.Addr, t.TempDir()}
}

// workProcess is a process that runs `curfew work`.
type workProcess struct {
	*exec.Cmd
	log   *harness.Logs
	ended <-chan struct{}
}

func (s *workStage) start(args ...string) *workProcess {
	s.Helper()
	return s.startLimited(0, nil, args...)
}

// startWith is start with more variables in the environment.
func (s *workStage) startWith(environment []string, args ...string) *workProcess {
	s.Helper()
	return s.startLimited(0, environment, args...)
}

// startLimited is start for a process that may have so many files open; 0: as many as this one.
func (s *workStage) startLimited(files int, environment []string, args ...string) *workProcess {
	s.Helper()
	args = append([]string{"work", "--namespace", s.q.Namespace()}, args...)
	cmd := exec.Command(os.Args[0], args...)
	if files > 0 {
		cmd = exec.Command("/bin/sh", append([]string{"-c", `ulimit -n $0; exec "$@"`, strconv.Itoa(files), os.Args[0]}, args...)...)
	}
	p := &workProcess{cmd, &harness.Logs{}, nil}
	p.Env = append(os.Environ(), commandVariable+"=yes", "REDIS_URL="+s.url, "DIR="+s.folder)
	p.Env = append(p.Env, environment...)
	p.Stderr = p.log
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%v:\n%s", p.Args, p.log)
		}
	})
	p.ended = spawn(s.T, cmd).Done()
	return p
}

// exit waits for the end of the process, and returns its exit code.
func (p *workProcess) exit(t testing.TB) int {
	t.Helper()
	await.Receive(t, p.ended, "the end of the worker")
	return p.ProcessState.ExitCode()
}

func (s *workStage) enqueue(task queue.Task) string {
	s.Helper()
	return queuetest.Enqueue(s, s.q, task).ID
}

// result waits for the end of a task.
func (s *workStage) result(id string) string {
	s.Helper()
	result, err := s.q.Result(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return string(result)
}

func (s *workStage) record(id string) *queue.Record {
	s.Helper()
	r, err := s.q.Get(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// drains reports whether the only worker has said that it drains.
func (s *workStage) drains() bool {
	workers, err := inspect.Workers(s.Context(), s.q)
	if err != nil {
		s.Fatal(err)
	}
	return len(workers) == 1 && workers[0].State == queue.WorkerDraining
}

// pid waits until a command has written a process id to a file.
func (s *workStage) pid(name string) (id int) {
	s.Helper()
	await.Until(s, "a process id in "+name, func() bool {
		text, _ := os.ReadFile(filepath.Join(s.folder, name))
		id, _ = strconv.Atoi(strings.TrimSuffix(string(text), "\n"))
		return strings.HasSuffix(string(text), "\n")
	})
	return id
}

func (s *workStage) gone(what string, pid int) {
	s.Helper()
	await.Until(s, fmt.Sprintf("the end of %s, process %d", what, pid), func() bool {
		if process, err := os.FindProcess(pid); err != nil || process.Signal(syscall.Signal(0)) != nil {
			return true
		}
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && strings.Contains(string(text), ") Z ")
	})
}

// stubborn is a command whose processes ignore SIGTERM. It writes their ids to files.
const stubborn = `trap '' TERM; (while :; do sleep 0.05; done) & echo $! >$DIR/child; echo $$ >$DIR/pid; while :; do sleep 0.05; done`

func TestWorkRunsCommandsAndCallsURLs(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL, " ", r.Header.Get("Curfew-Kind"), " ")
		io.Copy(w, r.Body)
	}))
	defer server.Close()
	p := s.start("--kind", "a", "--kind", "b", "--http", "c="+server.URL+"/c?x=1,2", "--http", "d="+server.URL+"/d", "--queue", "first=6", "--queue", "second",
		"--concurrency", "3", "--name", "w7", "--", "/bin/sh", "-c", `echo $CURFEW_KIND $1 --kind; cat`, "name", "--flag")
	for _, row := range []struct {
		task queue.Task
		want string
	}{
		{queue.Task{Kind: "a", Queue: "first", Payload: []byte("1")}, "a --flag --kind\n1"},
		{queue.Task{Kind: "b", Queue: "second", Payload: []byte("2")}, "b --flag --kind\n2"},
		{queue.Task{Kind: "c", Queue: "first", Payload: []byte("3")}, "/c?x=1,2 c 3"},
		{queue.Task{Kind: "d", Queue: "second", Payload: []byte("4")}, "/d d 4"},
	} {
		id := s.enqueue(row.task)
		if got := s.result(id); got != row.want {
			t.Errorf("kind %s: %q, want %q", row.task.Kind, got, row.want)
		}
		if r := s.record(id); !strings.HasPrefix(r.Worker, "w7-") {
			t.Errorf("the worker is %q, want one that begins with w7", r.Worker)
		}
	}
	p.Process.Signal(syscall.SIGTERM)
	if code := p.exit(t); code != 0 || !strings.Contains(p.log.String(), `kinds="a b c d"`) {
		t.Errorf("exit %d, %s", code, p.log)
	}
}

func TestTheFirstSignalDrainsAndTheSecondKills(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		claim        string
		first, later syscall.Signal
		script       string
		flags        []string
		code         int
		status       queue.Status
		log          string
	}{
		{"a task that ends in time counts", syscall.SIGINT, 0, `echo $$ >$DIR/pid; echo $$ >$DIR/child; while [ ! -e $DIR/go ]; do sleep 0.01; done`, nil, 0, queue.Completed, "The worker takes tasks"},
		{"after the shutdown timeout a task is given back", syscall.SIGTERM, 0, stubborn, []string{"--shutdown-timeout", "0s", "--grace", "50ms"}, 0, queue.Pending, "The worker takes tasks"},
		{"a second signal kills, and the task is given back", syscall.SIGINT, syscall.SIGINT, stubborn, []string{"--shutdown-timeout", "1h", "--grace", "1h"}, 1, queue.Pending, "a second signal has ended the worker at once"},
		{"a second signal kills what is in its grace", syscall.SIGTERM, syscall.SIGINT, stubborn, []string{"--shutdown-timeout", "0s", "--grace", "1h"}, 1, queue.Pending, "a second signal has ended the worker at once"},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			s := newWorkStage(t)
			p := s.start(append(append([]string{"--kind", "k", "--no-reaper"}, row.flags...), "--", "/bin/sh", "-c", row.script)...)
			id := s.enqueue(queue.Task{})
			command, child := s.pid("pid"), s.pid("child")
			p.Process.Signal(row.first)
			p.Process.Signal(row.first) // as timeout does: it counts as one
			if row.later != 0 {
				await.Until(t, "the worker drains", s.drains)
			}
			switch {
			case row.later != 0:
				time.Sleep(app.Doubled) // sleeps: until then it is the same signal
				await.Until(t, "the second signal ends the worker", func() bool {
					p.Process.Signal(row.later)
					select {
					case <-p.ended:
						return true
					case <-time.After(10 * time.Second): // the first one was handled later than the test waited
						return false
					}
				})
			case row.status == queue.Completed:
				if err := os.WriteFile(filepath.Join(s.folder, "go"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if code := p.exit(t); code != row.code || !strings.Contains(p.log.String(), row.log) {
				t.Errorf("exit %d, want %d and %q", code, row.code, row.log)
			}
			s.gone("the command", command)
			s.gone("its child", child)
			if r := s.record(id); r.Status != row.status || r.Retries != 0 || r.LeaseLosses != 0 {
				t.Errorf("the task is %s, retries %d, lost leases %d, want %s", r.Status, r.Retries, r.LeaseLosses, row.status)
			}
		})
	}
}

// When the worker lacks files for more commands or requests, tasks wait. That costs them no retry.
func TestALackOfFilesCostsNoRetry(t *testing.T) {
	t.Parallel()
	// Which call lacks a file depends on how many there are: pipe, open, fork or, in the new process, dup.
	for files := 30; files < 33; files++ {
		t.Run(fmt.Sprint(files, " files"), func(t *testing.T) {
			t.Parallel()
			s := newWorkStage(t)
			p := s.startLimited(files, nil, "--kind", "k", "--concurrency", "10", "--", "/bin/sh", "-c", `while [ ! -e $DIR/go ]; do sleep 0.05; done; cat`)
			s.lackFiles(p, 10, "The command cannot be started now", func() {
				if err := os.WriteFile(filepath.Join(s.folder, "go"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	t.Run("requests", func(t *testing.T) {
		t.Parallel()
		s := newWorkStage(t)
		answers := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-answers
			io.Copy(w, r.Body)
		}))
		answer := sync.OnceFunc(func() { close(answers) })
		t.Cleanup(func() { answer(); server.Close() })
		p := s.startLimited(20, nil, "--http", "k="+server.URL, "--concurrency", "20")
		s.lackFiles(p, 20, "The request cannot be sent now", answer)
	})
}

// lackFiles enqueues more tasks than a process has files for. When that is logged, enough lets the tasks end.
func (s *workStage) lackFiles(p *workProcess, tasks int, logged string, enough func()) {
	s.Helper()
	var ids []string
	for range tasks {
		ids = append(ids, s.enqueue(queue.Task{Payload: []byte("in")}))
	}
	await.Until(s, logged, func() bool { return strings.Contains(p.log.String(), logged) })
	enough()
	for _, id := range ids {
		if got := s.result(id); got != "in" {
			s.Errorf("the result is %q, want in", got)
		}
		if r := s.record(id); r.Retries != 0 {
			s.Errorf("%d retries were spent, want none", r.Retries)
		}
	}
}

// --create makes a namespace; without it a mistyped one is an error.
func TestWorkMakesNoNamespaceUnasked(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	new := s.q.Namespace() + "-new"
	code, out, errs := curfew(t, "work", "--redis", s.url, "--namespace", new, "--kind", "k", "--", "/bin/true")
	if code != app.ExitNotFound || out != "" || !strings.Contains(errs, "there is no namespace") {
		t.Errorf("exit %d, %q, %q, want that there is no such namespace", code, out, errs)
	}
	p := s.start("--namespace", new, "--create", "--kind", "k", "--", "/bin/true")
	await.Until(t, "the worker takes tasks", func() bool { return strings.Contains(p.log.String(), "The worker takes tasks") })
	p.Process.Signal(syscall.SIGTERM)
	if code := p.exit(t); code != 0 {
		t.Errorf("exit %d, want 0", code)
	}
	keys, err := s.q.Client().Keys(t.Context(), new+":*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("the keys of the new namespace are %v, %v", keys, err)
	}
	s.q.Client().Unlink(t.Context(), keys...)
}

func TestWorkIsRefusedBeforeItBegins(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, row := range []struct {
		args []string
		want string
	}{
		{nil, "write --kind KIND -- COMMAND, --http KIND=URL, or --flows"},
		{[]string{"--kind", "k"}, "--kind k needs a command that runs its tasks: add -- and the command"},
		{[]string{"--kind", "k", "--"}, "--kind k needs a command"},
		{[]string{"--", "true"}, `the command "true" has no kind of tasks to run: add --kind KIND before --`},
		{[]string{"--http", "a=http://x", "true"}, `the command "true" has no kind of tasks`},
		{[]string{"--kind", "k", "--", ""}, "the command after -- is empty"},
		{[]string{"--kind", "k", "resize", "--", "true"}, `"resize" is before --, and flags after it are not read`},
		{[]string{"--kind", "k", "--", missing}, "the command cannot be run"},
		{[]string{"--kind", "k", "--", "curfew-no-such-program"}, "executable file not found in $PATH"},
		{[]string{"--kind", "k", "--", os.TempDir()}, "is a directory"},
		{[]string{"--kind", "", "--", "true"}, `--kind: kind "" must be`},
		{[]string{"--kind", "a b", "--", "true"}, `"a b" must be 1 to 128`},
		{[]string{"--kind", "k", "--kind", "k", "--", "true"}, `the kind "k" is given twice`},
		{[]string{"--kind", "k", "--http", "k=http://x", "--", "true"}, `the kind "k" is given twice`},
		{[]string{"--http", "http://x/resize"}, "has no kind: write a kind, =, and the URL"},
		{[]string{"--http", "=http://x"}, `--http: kind "" must be`},
		{[]string{"--http", "k="}, "must be a URL that begins with http://"},
		{[]string{"--http", "k=localhost:80/x"}, "must be a URL that begins with http://"},
		{[]string{"--http", "k=ftp://x/"}, "must be a URL that begins with http://"},
		{[]string{"--http", "k=http://"}, "and has a host"},
		{[]string{"--http", "k=http://x", "--queue", ""}, `--queue "" must be a name and a weight, such as default=1`},
		{[]string{"--http", "k=http://x", "--queue", "a b=1"}, "must be a name and a weight"},
		{[]string{"--http", "k=http://x", "--queue", "a=0"}, `the weight "0" must be a whole number from 1`},
		{[]string{"--http", "k=http://x", "--queue", "a=x"}, `the weight "x" must be a whole number from 1`},
		{[]string{"--http", "k=http://x", "--queue", "a=-1"}, "must be a whole number from 1"},
		{[]string{"--http", "k=http://x", "--queue", "a", "--queue", "a=2"}, `the queue "a" is given twice`},
		{[]string{"--http", "k=http://x", "--concurrency", "0"}, "--concurrency 0 must be from 1"},
		{[]string{"--http", "k=http://x", "--concurrency", "many"}, `--concurrency "many" must be a whole number: see`},
		{[]string{"--kind", "k", "--concurrency", "4001", "--", "true"}, "--concurrency 4001 must be from 1 to 4000 with --kind"},
		{[]string{"--http", "k=http://user:s e\x00cret@/"}, "--http k=… must be a URL"},
		{[]string{"--http", "k=http://x", "--lease", "500ms"}, "--lease 500ms must be at least 1s"},
		{[]string{"--http", "k=http://x", "--lease", "5"}, "has no unit: write 5s"},
		{[]string{"--http", "k=http://x", "--grace", "-1s"}, "is negative"},
		{[]string{"--http", "k=http://x", "--max-bytes", "0"}, "--max-bytes 0 must be from 1"},
		{[]string{"--http", "k=http://x", "--bogus"}, "bogus"},
		{[]string{"--http", "k=http://x", "--namespace", ""}, "--namespace must not be empty"},
		{[]string{"--http", "k=http://x", "--redis", "localhost"}, "--redis:"},
	} {
		code, out, errs := curfew(t, append([]string{"work"}, row.args...)...)
		if code != app.ExitUsage || out != "" || !strings.Contains(errs, row.want) {
			t.Errorf("work %q: exit %d, %q, %q, want exit 2 and %q", row.args, code, out, errs, row.want)
		}
	}
	if code, out, errs := curfew(t, "work", "--help"); code != 0 || !strings.Contains(out, "exit code 75") || errs != "" {
		t.Errorf("--help: exit %d, %q, %q", code, out, errs)
	}
}
