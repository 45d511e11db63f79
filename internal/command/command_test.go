//go:build unix

package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/command"
	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const megabyte = 1 << 20

// Each command runs for a task of its own. All run in one worker at the same time.
func TestWhatACommandSaysIsTheOutcome(t *testing.T) {
	t.Parallel()
	failed := func(code int, reason queue.Reason, parts ...string) want {
		return want{status: queue.Failed, code: code, reason: reason, errors: parts}
	}
	three := queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}}
	big := queue.Task{Payload: []byte(strings.Repeat("x", megabyte))}
	late := queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Timeout: time.Minute} // no time is left for a retry after an hour
	once := `if [ $CURFEW_ATTEMPT = 2 ]; then echo second; exit 0; fi; `
	twice := want{result: "second\n", retries: 1}
	rows := []struct {
		claim  string
		task   queue.Task
		script string
		want   want
	}{
		{"stdout is the result", queue.Task{}, `echo done`, want{result: "done\n"}},
		{"no output is an empty result", queue.Task{}, `true`, want{}},
		{"the result may be binary", queue.Task{}, `printf 'a\000\377\001b'`, want{result: "a\x00\xff\x01b"}},
		{"stdin is the payload", queue.Task{Payload: []byte("in\x00\xff")}, `cat`, want{result: "in\x00\xff"}},
		{"stdin ends without a payload", queue.Task{}, `cat`, want{}},
		{"a payload of 1 MiB arrives", big, `wc -c | tr -d ' '`, want{result: strconv.Itoa(megabyte) + "\n"}},
		{"a payload of 1 MiB need not be read", big, `echo ignored`, want{result: "ignored\n"}},
		{"a failure without reading 1 MiB is a failure", big, `exit 3`, failed(3, queue.ReasonError, "exit code 3")},
		{"stdin may be closed", big, `exec <&-; echo closed`, want{result: "closed\n"}},
		{"a payload of 1 MiB may be the result", big, `cat`, want{result: string(big.Payload)}},
		{"a result that is one byte too large fails for good", three, `head -c 1048577 /dev/zero`, failed(0, queue.ReasonFailed, "1048576 bytes", "(1048577)", "write the result elsewhere")},
		{"10 MB of output fail for good, and do not block the command", three, `head -c 10000000 /dev/zero`, failed(0, queue.ReasonFailed, "(10000000)")},
		{"10 MB of output and an exit code are the exit code", queue.Task{}, `head -c 10000000 /dev/zero; exit 4`, failed(4, queue.ReasonError, "exit code 4")},
		{"10 MB to stderr do not matter if it is done", queue.Task{}, `head -c 10000000 /dev/zero >&2; echo ok`, want{result: "ok\n"}},
		{"10 MB to stderr are cut", queue.Task{}, `yes | head -c 10000000 >&2; echo end >&2; exit 5`, failed(5, queue.ReasonError, "exit code 5", "y\nend")},
		{"both outputs at once do not block", queue.Task{}, `head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2; wait; exit 6`, failed(6, queue.ReasonError)},
		{"stdout may be closed", queue.Task{}, `exec >&-; true`, want{}},

		{"an exit code is an error, with the code", queue.Task{}, `exit 1`, failed(1, queue.ReasonError, "exit code 1")},
		{"the highest exit code", queue.Task{}, `exit 255`, failed(255, queue.ReasonError, "exit code 255")},
		{"stderr is the text of the error", queue.Task{}, `echo no such page >&2; exit 2`, failed(2, queue.ReasonError, "exit code 2: no such page")},
		{"stdout is not", queue.Task{}, `echo secret; exit 2`, want{status: queue.Failed, code: 2, reason: queue.ReasonError, not: "secret"}},
		{"the last lines are kept", queue.Task{}, `for i in $(seq 1 50); do echo line $i >&2; done; exit 2`, want{status: queue.Failed, code: 2, reason: queue.ReasonError, errors: []string{"line 31\n", "line 50"}, not: "line 30\n"}},
		{"colours are taken out", queue.Task{}, `printf '\033[31mred\033[0m \033]0;title\007text' >&2; exit 2`, failed(2, queue.ReasonError, "exit code 2: red text")},
		{"binary on stderr is cleaned", queue.Task{}, `printf 'a\000\377\002b' >&2; exit 2`, failed(2, queue.ReasonError, "a\uFFFDb")},
		{"a progress bar is its last state", queue.Task{}, `printf '10%%\r50%%\r90%%\nstopped' >&2; exit 2`, failed(2, queue.ReasonError, "exit code 2: 90%\nstopped")},

		{"an error is retried while a retry is left", three, `exit 1`, want{status: queue.Failed, code: 1, reason: queue.ReasonError, retries: 3}},
		{"a retry can be what succeeds", three, once + `exit 1`, twice},
		{"65 fails for good", three, `echo bad data >&2; exit 65`, failed(65, queue.ReasonFailed, "exit code 65: bad data")},
		{"75 is retried", three, once + `exit 75`, twice},
		{"75 is retried at once if it says so", three, once + `echo retry-after: 0s >&2; exit 75`, twice},
		{"75 names the time", late, `echo retry-after: 1h >&2; exit 75`, failed(75, queue.ReasonError, "retry-after: 1h")},
		{"75 names the time in seconds", late, `echo busy >&2; echo Retry-After: 3600 >&2; exit 75`, failed(75, queue.ReasonError, "busy\nRetry-After: 3600")},
		{"75 names a time that is too long for any clock", late, `echo retry-after: 99999999999999999 >&2; exit 75`, failed(75, queue.ReasonError)},
		{"75 names a time that nobody can read", late, once + `echo retry-after: tomorrow >&2; exit 75`, twice},
		{"only the last line names the time", late, once + `echo retry-after: 1h >&2; echo more >&2; exit 75`, twice},
		{"another code names no time", late, once + `echo retry-after: 1h >&2; exit 1`, twice},
		{"an expression reads the code", queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Retry: "tasks.KIND.code == 9"}, once + `exit 9`, twice},
		{"an expression reads what a failed attempt wrote", queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Retry: "tasks.KIND.outputs.parameters.left == 1"}, once + `echo '{"left": 1}'; exit 1`, twice},

		{"SIGKILL is 137", queue.Task{}, `kill -KILL $$`, failed(137, queue.ReasonError, "signal 9")},
		{"SIGSEGV is 139", queue.Task{}, `kill -SEGV $$`, failed(139, queue.ReasonError, "signal 11")},
		{"a SIGTERM from elsewhere is a failure", queue.Task{}, `kill -TERM $$`, failed(143, queue.ReasonError, "signal 15")},
		{"what dies in a pipe is the shell's matter", queue.Task{}, `yes | head -1`, want{result: "y\n"}},
		{"SIGPIPE is not ignored", queue.Task{}, `(yes; echo $? >&2) | head -1 >/dev/null; sleep 0.05; exit 7`, failed(7, queue.ReasonError, "141")},

		{"it is told its task", queue.Task{Queue: "other", MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}}, `echo $CURFEW_KIND $CURFEW_QUEUE $CURFEW_ATTEMPT $CURFEW_MAX_RETRIES $CURFEW_EPOCH`, want{result: "KIND other 1 2 1\n"}},
		{"it is told the id and the worker", queue.Task{}, `test -n "$CURFEW_TASK_ID" && test -n "$CURFEW_WORKER" && echo yes`, want{result: "yes\n"}},
		{"it is told the deadline", queue.Task{Deadline: time.UnixMilli(4102444800123)}, `echo $CURFEW_DEADLINE_AT`, want{result: "4102444800123\n"}},
		{"it is told how much time is left", queue.Task{Timeout: 50 * time.Second}, `test $CURFEW_LEFT_MS -gt 20000 && test $CURFEW_LEFT_MS -le 50001 && echo yes`, want{result: "yes\n"}},
		{"it is told the time of the attempt", queue.Task{Timeout: time.Hour, AttemptTimeout: 50 * time.Second}, `test $CURFEW_LEFT_MS -le 50001 && echo yes`, want{result: "yes\n"}},
		{"it is told no deadline that it does not have", queue.Task{}, `echo "${CURFEW_DEADLINE_AT-none} ${CURFEW_LEFT_MS-none}"`, want{result: "none none\n"}},
		{"headers are variables", queue.Task{Headers: map[string]string{"tenant-id": "acme; $(rm)"}}, `echo "$CURFEW_HEADER_TENANT_ID"`, want{result: "acme; $(rm)\n"}},
		{"headers are JSON", queue.Task{Headers: map[string]string{"a": "é\x00\"\n😀<"}}, `printf %s "$CURFEW_HEADERS"`, want{result: `{"a":"\u00e9\u0000\"\n\ud83d\ude00\u003c"}`}},
		{"traceparent has its own name", queue.Task{Headers: map[string]string{"traceparent": "00-1-2-01", "Tracestate": "s"}}, `echo $TRACEPARENT $TRACESTATE`, want{result: "00-1-2-01 s\n"}},
		{"a header sets no other variable", queue.Task{Headers: map[string]string{"PATH": "/nowhere", "LD_PRELOAD": "x"}}, `ls / >/dev/null && echo "$CURFEW_HEADER_PATH ${LD_PRELOAD-none}"`, want{result: "/nowhere none\n"}},
		{"a header that no variable can hold is left out", queue.Task{Headers: map[string]string{"nul": "a\x00b", "ok": "1"}}, `echo "${CURFEW_HEADER_NUL-none} $CURFEW_HEADER_OK"`, want{result: "none 1\n"}},
		{"headers that are too large fail for good", queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Headers: map[string]string{"a": strings.Repeat("\x01", 10923)}}, `true`, failed(0, queue.ReasonFailed, "headers of the task have 65546 bytes", "into the payload")},
		{"large headers arrive", queue.Task{Headers: map[string]string{"a": strings.Repeat("x", 64<<10-8)}}, `printf %s "$CURFEW_HEADER_A" | wc -c | tr -d ' '`, want{result: "65528\n"}},

		{"a child that holds stdout does not delay the result", queue.Task{}, `sleep 60 & echo now`, want{result: "now\n"}},
	}
	s := newStage(t)
	w := worker.New(s.q, worker.Config{Concurrency: 16, Queues: map[string]int{"default": 1, "other": 1}})
	dir := t.TempDir()
	ids := make([]string, len(rows))
	for i, row := range rows {
		kind := "k" + strconv.Itoa(i)
		w.HandleRaw(kind, s.script(row.script, dir).Handle)
		row.task.Kind, row.task.Retry = kind, strings.ReplaceAll(row.task.Retry, "KIND", kind)
		ids[i] = s.enqueue(row.task)
	}
	s.run(w)
	for i, row := range rows {
		t.Run(row.claim, func(t *testing.T) {
			row.want.result = strings.ReplaceAll(row.want.result, "KIND", "k"+strconv.Itoa(i))
			row.want.compare(t, s.ended(ids[i]))
		})
	}
}

// A process that has left the group and holds stdout open does not delay the result. It is not ended.
func TestAProcessThatHasLeftTheGroup(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	s.work(s.script(`setsid sh -c 'echo $$ >$DIR/left; exec sleep 60' & while [ ! -s $DIR/left ]; do sleep 0.01; done; echo now`, dir).Handle)
	id := s.enqueue(queue.Task{})
	left := pid(t, dir, "left")
	defer syscall.Kill(left, syscall.SIGKILL)
	want{result: "now\n"}.compare(t, s.ended(id))
	if !running(left) {
		t.Error("the process has ended, and so this test shows nothing")
	}
}

// A command that exits with 75 and names no time is retried after Command.RetryAfter.
func TestTheDefaultOfExitCode75(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	c := s.script("exit 75", "")
	c.RetryAfter = time.Hour
	s.work(c.Handle)
	r := s.ended(s.enqueue(queue.Task{MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}, Timeout: time.Minute}))
	want{status: queue.Failed, code: 75, reason: queue.ReasonError}.compare(t, r)
	if r.RetryState != "deadline" {
		t.Errorf("RetryState is %q, want that there was no time for a retry", r.RetryState)
	}
}

// A command that cannot be started fails as in a shell, and its task can be retried: the file may
// be there again when a deployment is over.
func TestCommandsThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := redisproc.WriteProgram(path, text); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for i, row := range []struct {
		claim, path string
		code        int
		err         string
	}{
		{"it is not there", filepath.Join(dir, "nothing"), 127, "no such file"},
		{"it is not in PATH", "curfew-no-such-program", 127, "not found"},
		{"it is not executable", file("plain", "#!/bin/sh\n", 0o644), 126, "permission denied"},
		{"it is a folder", dir, 126, "permission denied"},
		{"it is no program", file("text", "text\n", 0o755), 126, "exec format error"},
		{"its interpreter is not there", file("script", "#!/nowhere/sh\n", 0o755), 127, "no such file"},
		{"its name has a NUL", "a\x00b", 0, ""},
	} {
		t.Run(row.claim, func(t *testing.T) {
			kind := fmt.Sprint("k", i)
			w := worker.New(s.q, worker.Config{})
			w.HandleRaw(kind, command.NewCommand(row.path).Handle)
			id := s.enqueue(queue.Task{Kind: kind, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
			for range 2 {
				if _, err := w.RunOne(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if row.code == 0 {
				row.code = 127 // there is no such program
			}
			want{status: queue.Failed, code: row.code, reason: queue.ReasonError, retries: 1, errors: []string{"cannot start the command", row.err}}.compare(t, s.record(id))
		})
	}
}

// Variables of the worker's own environment that a task sets do not reach a task that does not.
func TestVariablesOfTheWorkerAreNotTakenForTheTask(t *testing.T) {
	for _, name := range []string{"CURFEW_DEADLINE_AT", "CURFEW_HEADERS", "CURFEW_HEADER_A", "TRACEPARENT", "HANDLER_OWN"} {
		t.Setenv(name, "outer")
	}
	s := newStage(t)
	s.work(s.script(`echo "${CURFEW_DEADLINE_AT-} ${CURFEW_HEADERS-} ${CURFEW_HEADER_A-} ${TRACEPARENT-} $HANDLER_OWN"`, "").Handle)
	want{result: "    outer\n"}.compare(t, s.ended(s.enqueue(queue.Task{})))
}

func TestHiddenVariablesStayWithTheWorker(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://:secret@127.0.0.1:1")
	s := newStage(t)
	c := s.script(`echo "<$REDIS_URL>"`, "")
	c.Hide = []string{"REDIS_URL"}
	s.work(c.Handle)
	want{result: "<>\n"}.compare(t, s.ended(s.enqueue(queue.Task{})))
}
