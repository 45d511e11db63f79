package httpapi

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/stages"
)

// The worker of examples/http runs tasks, and ends by SIGTERM without leaving any.
func TestTheExampleWorkerRunsTasks(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil && os.Getenv("CURFEW_DOORS") == "" {
		t.Skip("python3 is not installed: make doors installs it, and runs this test")
	} else if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, Config{})
	log := &stages.Logs{}
	worker := exec.Command(python, "../examples/http/worker.py")
	worker.Env = append(worker.Environ(), "CURFEW_URL="+strings.TrimSuffix(s.base, "/"))
	worker.Stdout, worker.Stderr = log, log
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	t.Cleanup(func() { worker.Process.Kill() })
	for i := range 10 {
		id := s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"render","payload":%d}`, i)).text("id")
		if r := s.want(200, "GET", "tasks/"+id+"/result?wait=60s", ""); r.text("result") != fmt.Sprint("rendered ", i) {
			t.Fatalf("the result is %s\n%s", r.body, log)
		}
	}
	slow := s.want(201, "POST", "tasks", `{"kind":"sleep","payload":0.5}`).text("id")
	await.Until(t, "the task runs", func() bool { return s.do("GET", "tasks/"+slow, "").text("status") == "RUNNING" })
	worker.Process.Signal(syscall.SIGTERM)
	if err := await.Receive(t, ended, "the end of the worker"); err != nil {
		t.Errorf("the worker ends with %v\n%s", err, log)
	}
	if r := s.want(200, "GET", "tasks/"+slow+"/result", ""); r.text("result") != "slept" {
		t.Errorf("the task that ran ended as %s", r.body)
	}
}
