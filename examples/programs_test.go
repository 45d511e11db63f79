package examples_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// language is how the programs of a folder are started.
type language struct {
	name string
	// worker is a worker of a queue with so many slots, whose lease is short. It knows the kinds
	// render, sleep and hang.
	worker func(line string, slots int) []string
	// produce enqueues a task, and wait waits for its end and prints the result. A program whose
	// producer does both has no wait.
	produce func(kind, timeout, line string) []string
	wait    []string
}

// handlers is what the shell's worker runs.
const handlers = `case $CURFEW_KIND in
render) printf 'rendered '; cat ;;
sleep) sleep "$(cat)" && printf slept ;;
hang) trap '' TERM; sleep 3600 ;;
*) echo "cannot run $CURFEW_KIND" >&2; exit 7 ;;
esac`

var languages = []language{
	{"python",
		func(line string, slots int) []string {
			return []string{"env", "QUEUE=" + line, "SLOTS=" + fmt.Sprint(slots), python(), "python/worker.py"}
		},
		func(kind, timeout, line string) []string {
			return []string{python(), "python/producer.py", kind, "--timeout", timeout, "--queue", line}
		},
		[]string{python(), "python/wait.py"}},
	{"node",
		func(line string, slots int) []string {
			return []string{"env", "QUEUE=" + line, "SLOTS=" + fmt.Sprint(slots), "node", "node/worker.js"}
		},
		func(kind, timeout, line string) []string {
			return []string{"node", "node/producer.js", kind, "--timeout", timeout, "--queue", line}
		}, nil},
	{"shell",
		func(line string, _ int) []string {
			return []string{"sh", "shell/worker.sh", line, "30", "sh", "-c", handlers}
		},
		func(kind, timeout, line string) []string {
			return []string{"sh", "shell/producer.sh", kind, timeout, line}
		}, nil},
}

// python is a Python that has the package redis. The first on the PATH may be another than Debian's.
var python = sync.OnceValue(func() string {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import redis").Run() == nil {
			return name
		}
	}
	return "python3" // whose error says what is missing
})

// site is a namespace, and programs that use it.
type site struct {
	testing.TB
	q   *queue.Queue
	env []string
}

func newSite(t testing.TB, server *redistest.Server) *site {
	q := queuetest.Open(t, server.Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	return &site{t, q, append(os.Environ(), "REDIS_URL=redis://"+server.Addr, "CURFEW_ROOT="+q.Root(0),
		"TMPDIR="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1", "LEASE_MS=1000")}
}

// hurry makes the clocks of programs that start from now on run faster than that of Redis, by a quarter.
func (s *site) hurry() {
	s.Helper()
	dir := s.TempDir()
	for name, text := range map[string]string{
		"sitecustomize.py": `import threading, time
real_wait, real_monotonic = threading.Event.wait, time.monotonic
threading.Event.wait = lambda event, timeout=None: real_wait(event, timeout and timeout * 0.75)
time.monotonic = lambda: real_monotonic() / 0.75
`,
		"fast.cjs": "const real = setTimeout; globalThis.setTimeout = (f, ms, ...args) => real(f, ms * 0.75, ...args);\n",
		"timeout":  "#!/bin/sh\nseconds=$(awk \"BEGIN { print $3 * 0.75 }\")\nshift 3\nexec /usr/bin/timeout -k 1 \"$seconds\" \"$@\"\n",
	} {
		if err := redisproc.WriteProgram(filepath.Join(dir, name), text); err != nil {
			s.Fatal(err)
		}
	}
	s.env = append(s.env, "PYTHONPATH="+dir, "NODE_OPTIONS=--require="+filepath.Join(dir, "fast.cjs"), "PATH="+dir+":"+os.Getenv("PATH"))
}

// each runs a test for each language at the same time, each in a namespace of its own.
func each(t *testing.T, which []language, test func(s *site, l language)) {
	server := redistest.Shared(t)
	for _, l := range which {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			test(newSite(t, server), l)
		})
	}
}

// program is a program that runs.
type program struct {
	*redisproc.Child
	stdout, said harness.Logs // said is everything that it prints
}

// both writes to two outputs.
type both [2]*harness.Logs

func (b both) Write(p []byte) (int, error) {
	b[0].Write(p)
	return b[1].Write(p)
}

// start starts a program with this standard input. It is killed when the test ends.
func (s *site) start(stdin string, words ...string) *program {
	s.Helper()
	p := &program{}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.env, strings.NewReader(stdin), both{&p.stdout, &p.said}, &p.said
	var err error
	if p.Child, err = redisproc.Spawn(cmd); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		p.Kill()
		if s.Failed() {
			s.Logf("%q said:\n%s", words, &p.said)
		}
	})
	return p
}

// produce enqueues a task in a language, and returns the program that waits for its end.
func (s *site) produce(l language, kind, timeout, line, payload string) *program {
	s.Helper()
	return s.waiter(l, s.start(payload, l.produce(kind, timeout, line)...))
}

// waiter returns the program that waits for the end of the task that a producer enqueues.
func (s *site) waiter(l language, producer *program) *program {
	s.Helper()
	if l.wait == nil {
		return producer
	}
	id := strings.TrimSpace(producer.await(s))
	return s.start("", slices.Concat(l.wait, []string{id})...)
}

// await waits for the end of a program, and returns what it printed to its standard output.
func (p *program) await(s *site) string {
	s.Helper()
	await.Receive(s, p.Done(), "a program to end")
	return p.stdout.String()
}

// settles waits until a worker has reported an attempt, which Redis may have refused.
func (p *program) settles(s *site, id string) {
	s.Helper()
	await.Until(s, "a worker settles "+id, func() bool {
		said := p.said.String()
		return strings.Contains(said, "\n"+id+" ") || strings.HasPrefix(said, id+" ") || strings.Contains(said, "CURFEW LOST "+id)
	})
}

// terminate sends SIGTERM until a program has ended. A signal that arrives while the one before it is pending is lost, so
// it sends several.
func (p *program) terminate(s *site) {
	s.Helper()
	await.Until(s, "a program ends", func() bool {
		p.Signal(syscall.SIGTERM)
		select {
		case <-p.Done():
			return true
		default:
			return false
		}
	})
}

// says waits until a program has printed a text.
func (p *program) says(s *site, text string) {
	s.Helper()
	await.Until(s, "a program prints "+text, func() bool { return strings.Contains(p.said.String(), text) })
}

// enqueue enqueues a task from Go.
func (s *site) enqueue(task queue.Task) string {
	s.Helper()
	return queuetest.Enqueue(s, s.q, task).ID
}

// status waits until a task has a status, and returns its record.
func (s *site) status(id string, want queue.Status) *queue.Record {
	s.Helper()
	var record *queue.Record
	await.Until(s, id+" is "+string(want), func() bool {
		var err error
		if record, err = s.q.Get(s.Context(), id); err != nil {
			s.Fatal(err)
		}
		return record.Status == want
	})
	return record
}

// renders checks that the worker of a queue runs a task.
func (s *site) renders(line string) {
	s.Helper()
	id := s.enqueue(queue.Task{Kind: "render", Queue: line, Payload: []byte("more")})
	ctx, cancel := context.WithTimeout(s.Context(), await.Patience)
	defer cancel()
	if result, err := s.q.Result(ctx, id); string(result) != "rendered more" || err != nil {
		s.Errorf("a later task has the result %q, %v", result, err)
	}
}
