package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/queue"
)

// exampleWorker is a process of the worker of examples/http.
type exampleWorker struct {
	process *os.Process
	log     *harness.Logs
	ended   chan error
}

func startExampleWorker(t *testing.T, environment ...string) *exampleWorker {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CURFEW_DOORS") == "" {
		t.Skip("python3 is not installed: make doors installs it, and runs this test")
	} else if err != nil {
		t.Fatal(err)
	}
	const script = "../examples/http/worker.py"
	if _, err := os.Stat(script); err != nil { // so go test runs this again when the script has changed
		t.Fatal(err)
	}
	w := &exampleWorker{log: &harness.Logs{}, ended: make(chan error, 1)}
	command := exec.Command(python, script)
	command.Env = append(command.Environ(), environment...)
	command.Stdout, command.Stderr = w.log, w.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w.process = command.Process
	go func() { w.ended <- command.Wait() }()
	t.Cleanup(func() { w.process.Kill() })
	return w
}

// stop ends the worker by SIGTERM, and waits until it has ended.
func (w *exampleWorker) stop(t *testing.T) {
	t.Helper()
	w.process.Signal(syscall.SIGTERM)
	if err := await.Receive(t, w.ended, "the end of the worker"); err != nil {
		t.Errorf("the worker ends with %v\n%s", err, w.log)
	}
}

// The worker of examples/http runs tasks, says which queue it serves, and ends by SIGTERM without leaving any.
func TestTheExampleWorkerRunsTasks(t *testing.T) {
	s := newStage(t, Config{})
	w := startExampleWorker(t, "CURFEW_URL="+strings.TrimSuffix(s.base, "/"))
	for i := range 10 {
		id := s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"render","payload":%d}`, i)).text("id")
		if r := s.want(200, "GET", "tasks/"+id+"/result?wait=60s", ""); r.text("result") != fmt.Sprint("rendered ", i) {
			t.Fatalf("the result is %s\n%s", r.body, w.log)
		}
	}
	await.Until(t, "the worker says that it serves the queue", func() bool {
		workers, err := inspect.Workers(t.Context(), s.q)
		return err == nil && len(workers) == 1 && workers[0].Serves("default")
	})
	slow := s.want(201, "POST", "tasks", `{"kind":"sleep","payload":0.5}`).text("id")
	await.Until(t, "the task runs", func() bool { return s.do("GET", "tasks/"+slow, "").text("status") == "RUNNING" })
	w.stop(t)
	if r := s.want(200, "GET", "tasks/"+slow+"/result", ""); r.text("result") != "slept" {
		t.Errorf("the task that ran ended as %s", r.body)
	}
	if workers, err := inspect.Workers(t.Context(), s.q); err != nil || len(workers) != 0 {
		t.Errorf("after its end the namespace has the workers %v, %v", workers, err)
	}
}

// A worker that is refused ends with an error that names the cause, and does not ask again and again.
func TestTheExampleWorkerEndsWhenItIsRefused(t *testing.T) {
	for _, c := range []struct {
		known       bool
		role        Role
		path, cause string
	}{
		{false, Work, "", "set CURFEW_TOKEN"},
		{true, Read, "", "the role work"},
		{true, Work, "-no-such", "CURFEW_URL must end"},
	} {
		var asked atomic.Int64
		auth := func(*http.Request) (Identity, bool) {
			asked.Add(1)
			return Identity{Name: "somebody", Roles: []Role{c.role}}, c.known
		}
		s := newStage(t, Config{Auth: []Authenticator{auth}})
		w := startExampleWorker(t, "CURFEW_URL="+strings.TrimSuffix(s.base, "/")+c.path, "CURFEW_TOKEN=wrong")
		if err := await.Receive(t, w.ended, "the end of the worker"); err == nil || w.log.Count(c.cause) == 0 {
			t.Errorf("the worker ends with %v, and does not name the cause %q\n%s", err, c.cause, w.log)
		}
		if n := asked.Load(); n > 2 { // a heartbeat and a fetch
			t.Errorf("the worker made %d requests\n%s", n, w.log)
		}
	}
}

// If it is unknown whether a settle had its effect, the worker repeats the same call. What is refused is said.
func TestTheExampleWorkerSettlesInSpiteOfTrouble(t *testing.T) {
	s := newStageOf(t, queue.Config{MaxBytes: 200}, Config{})
	front := &loser{to: s.web.URL}
	web := httptest.NewServer(front)
	t.Cleanup(web.Close)
	w := startExampleWorker(t, "CURFEW_URL="+web.URL+"/api/v1/"+s.q.Namespace(), "LEASE_MS=3000")

	id := s.want(201, "POST", "tasks", `{"kind":"render","payload":1}`).text("id")
	await.Until(t, "the worker knows that the task has ended", func() bool { return w.log.Count(id+" COMPLETED\n") == 1 })
	bodies := front.settles()
	if len(bodies) != 3 || bodies[0] != bodies[1] || bodies[0] != bodies[2] {
		t.Errorf("the settles are %q: want one and two repeats\n%s", bodies, w.log)
	}
	if n := w.log.Count("settle is repeated"); n != 1 {
		t.Errorf("the trouble was said %d times\n%s", n, w.log)
	}

	cancelled := s.want(201, "POST", "tasks", `{"kind":"sleep","payload":60}`).text("id")
	await.Until(t, "the task runs", func() bool { return s.do("GET", "tasks/"+cancelled, "").text("status") == "RUNNING" })
	s.want(200, "POST", "tasks/"+cancelled+"/cancel", `{}`)
	await.Until(t, "the refusal is said", func() bool { return w.log.Count(cancelled+" lost:") == 1 })

	large := s.want(201, "POST", "tasks", `{"kind":"render","payload":"`+strings.Repeat("x", 195)+`"}`).text("id")
	if r := s.want(200, "GET", "tasks/"+large+"/result?wait=60s", ""); r.text("status") != "FAILED" || !strings.Contains(r.body, "limit") {
		t.Errorf("a task with too large a result ended as %s\n%s", r.body, w.log)
	}
	w.stop(t)
}

// loser passes requests on. It loses the first two answers to settle: one with a 504, and one with its connection.
type loser struct {
	to   string
	mu   sync.Mutex
	seen []string
}

func (l *loser) settles() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.seen...)
}

func (l *loser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	n := 0
	if strings.HasSuffix(r.URL.Path, "/settle") {
		l.mu.Lock()
		l.seen = append(l.seen, string(text))
		n = len(l.seen)
		l.mu.Unlock()
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, l.to+r.URL.RequestURI(), strings.NewReader(string(text)))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	request.Header = r.Header.Clone()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer response.Body.Close()
	switch n {
	case 1:
		w.WriteHeader(http.StatusGatewayTimeout)
	case 2:
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(response.StatusCode)
		if _, err := io.Copy(w, response.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
