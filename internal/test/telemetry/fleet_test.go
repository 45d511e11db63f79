package telemetry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/otlp"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// lease is that of the workers. It is longer than Redis is stopped, and is what the tasks of a killed worker wait for.
const lease = 5 * time.Second

// fleet is the processes of a namespace. Each logs in JSON to a file of its own, and sends its spans to the collector.
type fleet struct {
	*harness.Stage
	redis     *redistest.Server
	collector *otlp.Collector
	program   string
	folder    string
	logs      []string // files

	producer  *member // in Go
	tasks     io.WriteCloser
	ids       *bufio.Reader // what it prints
	serves    []*member
	fetches   int // by the worker that the test plays over HTTP
	processes []*member
}

// member is a process of the fleet.
type member struct {
	*redisproc.Child
	name, log string
	url       string // of a server
}

// text returns what the member has logged.
func (m *member) text() string {
	text, _ := os.ReadFile(m.log)
	return string(text)
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	server := redistest.Start(t)
	f := &fleet{redis: server, folder: t.TempDir(), collector: otlp.New(t),
		Stage: harness.New(t, server.Addr, queue.Config{Events: queue.EventsAll})}
	f.program = filepath.Join(f.folder, "curfew")
	if out, err := exec.Command("go", "build", "-o", f.program, "../../../cmd/curfew").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		for _, m := range f.processes {
			if t.Failed() {
				t.Logf("the log of %s:\n%.1500s", m.name, m.text())
			}
		}
	})
	return f
}

// prepare returns a process with the environment of the fleet.
func (f *fleet) prepare(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "CURFEW_REDIS_URL=redis://"+f.Addr, "REDIS_URL=redis://"+f.Addr, "CURFEW_NAMESPACE="+f.Q.Namespace(),
		"XDG_CONFIG_HOME="+f.folder, "OTEL_EXPORTER_OTLP_ENDPOINT="+f.collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_BSP_MAX_QUEUE_SIZE=100000")
	return cmd
}

// start starts a process. It is ready when it has logged a text.
func (f *fleet) start(name, ready string, cmd *exec.Cmd) *member {
	f.Helper()
	m := &member{name: name, log: filepath.Join(f.folder, fmt.Sprintf("%d-%s.log", len(f.logs), name))}
	f.logs = append(f.logs, m.log)
	log, err := os.Create(m.log)
	if err != nil {
		f.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if m.Child, err = redisproc.Spawn(cmd); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(m.Kill)
	f.processes = append(f.processes, m)
	await.Until(f, name+" logs: "+ready, func() bool { return strings.Contains(m.text(), ready) })
	return m
}

// curfew starts a command of the fleet.
func (f *fleet) curfew(name, ready string, args ...string) *member {
	f.Helper()
	return f.start(name, ready, f.prepare(f.program, slices.Insert(args, 1, "--log-format", "json")...))
}

// work starts a worker whose tasks are scripts of sh.
func (f *fleet) work(name string) *member {
	f.Helper()
	return f.curfew(name, "The worker takes tasks", "work", "--name", name, "--lease", lease.String(), "--concurrency", "30", "--grace", "1s", "--no-reaper", "--kind", "sh", "--", "sh")
}

func (f *fleet) reap(name string) *member {
	f.Helper()
	return f.curfew(name, "The reaper runs", "reap", "--name", name)
}

func (f *fleet) serve(name string) *member {
	f.Helper()
	m := f.curfew(name, "The server runs", "serve", "--listen", "127.0.0.1:0")
	m.url = regexp.MustCompile(`"url":"([^"]+)"`).FindStringSubmatch(m.text())[1]
	return m
}

// role starts a process of this test binary.
func (f *fleet) role(role, ready string) *member {
	f.Helper()
	cmd := f.prepare(os.Args[0])
	cmd.Env = append(cmd.Env, roleVariable+"="+role)
	if role == "produce" {
		in, tasks, err := os.Pipe()
		if err != nil {
			f.Fatal(err)
		}
		ids, out, err := os.Pipe()
		if err != nil {
			f.Fatal(err)
		}
		defer in.Close()
		defer out.Close()
		cmd.Stdin, cmd.Stdout = in, out
		f.tasks, f.ids = tasks, bufio.NewReader(ids)
		f.Cleanup(func() { tasks.Close(); ids.Close() })
	}
	return f.start(role, ready, cmd)
}

// end sends SIGTERM to members, and waits for their ends. All must succeed.
func (f *fleet) end(members ...*member) {
	f.Helper()
	for _, m := range members {
		if err := m.Signal(syscall.SIGTERM); err != nil {
			f.Fatal(err)
		}
	}
	for _, m := range members {
		await.Receive(f, m.Done(), "the end of "+m.name)
		if !m.Succeeded() {
			f.Errorf("%s failed", m.name)
		}
	}
}

// request makes a request to a server, and returns its answer.
func (f *fleet) request(method, url, body string) string {
	f.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil || response.StatusCode >= 300 {
		f.Fatalf("%s %s %s: %v %s", method, url, body, response.Status, &text)
	}
	return text.String()
}

// post makes a request to the API of the server that was started last, and returns the JSON object of its answer.
func (f *fleet) post(path string, body any) (answer map[string]any) {
	f.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		f.Fatal(err)
	}
	text = []byte(f.request("POST", f.serves[1].url+"/api/v1/"+f.Q.Namespace()+"/"+path, string(text)))
	if err := json.Unmarshal(text, &answer); err != nil {
		f.Fatalf("%s: %s", err, text)
	}
	return answer
}

// produce enqueues a task by one of the two producers, and returns its id.
func (f *fleet) produce(over string, task object) string {
	f.Helper()
	if over == "http" {
		return f.post("tasks", task)["id"].(string)
	}
	line, err := json.Marshal(task)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.tasks.Write(append(line, '\n')); err != nil {
		f.Fatal(err)
	}
	id, err := f.ids.ReadString('\n')
	if err != nil {
		f.Fatalf("the producer: %v\n%s", err, f.producer.text())
	}
	return strings.TrimSpace(id)
}

// await is await.Until for a condition that costs much to look at: on a busy machine it would take the time of the fleet.
func (f *fleet) await(what string, holds func() bool) {
	f.Helper()
	await.Until(f, what, func() bool {
		harness.Pass(50 * time.Millisecond)
		return holds()
	})
}

// ledger reads the event streams.
func (f *fleet) ledger() ledger { return ofEvents(f.Events(f.Q)) }

// awaitObserved waits until everything in the event streams has also been logged, and its spans have been collected. From then
// on a process that has nothing to do can be killed, and nothing is missing.
func (f *fleet) awaitObserved() {
	f.Helper()
	var lacking []string
	defer func() {
		if f.Failed() {
			f.Logf("log lines and spans differ from the events:\n%s", strings.Join(lacking, "\n"))
		}
	}()
	f.await("everything is logged and its spans are collected", func() bool {
		told, logs, spans := f.ledger(), ofLogs(f.T, f.logs), ofSpans(f.collector.Spans())
		lacking = append(differences(logs.about("timeout-of", "resumed-by"), told.about("timeout-of", "resumed-by")),
			differences(spans.about("timeout-of", "ran-of"), told.about("timeout-of", "ran-of"))...)
		return len(lacking) == 0
	})
}
