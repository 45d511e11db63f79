//go:build unix

package command_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/command"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// guardVariable makes this test binary a guard process.
const guardVariable = "CURFEW_TEST_GUARD"

func TestMain(m *testing.M) {
	if os.Getenv(guardVariable) != "" {
		command.Watch(os.Stdin)
		return
	}
	redistest.AtOnce(8) // these tests wait more than they compute
	redistest.Main(m)
}

// stage is a namespace for one test.
type stage struct {
	testing.TB
	q    *queue.Queue
	logs *harness.Logs
}

func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{TB: t, logs: &harness.Logs{}}
	q, err := queue.Open(t.Context(), redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t), Logger: s.logger()})
	if err != nil {
		t.Fatal(err)
	}
	s.q = q
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log:\n%.20000s", s.logs)
		}
	})
	return s
}

func (s *stage) logger() *slog.Logger { return slog.New(slog.NewTextHandler(s.logs, nil)) }

// run starts a worker. stop ends it, and returns when it has drained.
func (s *stage) run(w *worker.Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := await.Receive(s, ended, "the end of the worker"); err != nil {
			s.Errorf("Run = %v, want nil", err)
		}
	})
	s.Cleanup(stop)
	return stop
}

// work runs a worker with one handler, for the kind k.
func (s *stage) work(handle worker.Handler) (stop func()) {
	w := worker.New(s.q, worker.Config{})
	w.HandleRaw("k", handle)
	return s.run(w)
}

func (s *stage) enqueue(task queue.Task) string {
	s.Helper()
	if task.Kind == "" {
		task.Kind = "k"
	}
	r, err := s.q.Enqueue(s.Context(), task)
	if err != nil {
		s.Fatal(err)
	}
	return r.ID
}

func (s *stage) record(id string) *queue.Record {
	s.Helper()
	r, err := s.q.Get(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// ended waits for the end of a task and returns its record.
func (s *stage) ended(id string) *queue.Record {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), await.Patience)
	defer cancel()
	if _, err := s.q.Result(ctx, id); errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		s.Fatalf("task %s has not ended: %+v", id, s.record(id))
	}
	return s.record(id)
}

// script returns a command that runs a shell script. $DIR is a folder of the test.
func (s *stage) script(text, dir string) *command.Command {
	c := command.NewCommand("/bin/sh", "-c", "export DIR='"+dir+"'; "+text)
	c.Log = s.logger()
	return c
}

// want is how a task must have ended. Only what is set is compared, except Status and Code.
type want struct {
	status  queue.Status // COMPLETED by default
	result  string
	errors  []string // parts of the error
	not     string   // not in the error
	code    int      // of a task that has failed; another one keeps the code of its last failure
	reason  queue.Reason
	retries int
}

func (w want) compare(t testing.TB, r *queue.Record) {
	t.Helper()
	if w.status == "" {
		w.status = queue.Completed
	}
	if r.Status != w.status || r.Code != w.code && w.status != queue.Completed || r.Reason != w.reason || r.Retries != w.retries {
		t.Errorf("the task is %s, code %d, reason %q, retries %d, error %q; want %s, code %d, reason %q, retries %d",
			r.Status, r.Code, r.Reason, r.Retries, clip(r.Error), w.status, w.code, w.reason, w.retries)
	}
	if w.status == queue.Completed && string(r.Result) != w.result {
		t.Errorf("the result has %d bytes, %q, want %q", len(r.Result), clip(string(r.Result)), clip(w.result))
	}
	for _, part := range w.errors {
		if !strings.Contains(r.Error, part) {
			t.Errorf("the error is %q, want %q in it", clip(r.Error), part)
		}
	}
	if w.not != "" && strings.Contains(r.Error, w.not) {
		t.Errorf("the error is %q, and must not have %q", clip(r.Error), w.not)
	}
	for _, c := range r.Error {
		if c < ' ' && c != '\n' || c == 0x7f {
			t.Errorf("the error has a control character: %q", clip(r.Error))
			break
		}
	}
}

func clip(s string) string { return fmt.Sprintf("%.300s", s) }

// pid waits until a script has written a process id to a file, and returns it.
func pid(t testing.TB, dir, name string) (id int) {
	t.Helper()
	await.Until(t, "a process id in "+name, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		id, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return id > 0 && strings.HasSuffix(string(text), "\n")
	})
	return id
}

// gone waits until a process has ended.
func gone(t testing.TB, what string, pid int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("the end of %s, process %d", what, pid), func() bool { return !running(pid) })
}

// running reports whether a process runs. One that has ended and whose parent has not noticed does
// not run.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(text), ") Z ")
}

// quietLog is for servers whose handlers panic on purpose.
var quietLog = log.New(io.Discard, "", 0)
