package newcode

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// fleet runs programs of several builds on one namespace.
type fleet struct {
	*testing.T
	q      *queue.Queue
	url    string
	folder string
}

func newFleet(t *testing.T) *fleet {
	t.Parallel()
	server := redistest.Start(t)
	q, err := queue.Open(t.Context(), server.Client(t), queue.Config{Namespace: redistest.Namespace(t), Events: queue.EventsAll})
	if err != nil {
		t.Fatal(err)
	}
	return &fleet{t, q, "redis://" + server.Addr, t.TempDir()}
}

// process is a running program.
type process struct {
	*redisproc.Child
	mu  sync.Mutex
	log bytes.Buffer
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// deploy builds the program with some code, and starts it.
func (f *fleet) deploy(code string) *process {
	f.Helper()
	program := filepath.Join(f.folder, code)
	if _, err := os.Stat(program); err != nil {
		if out, err := exec.Command("go", "build", "-ldflags", "-s -w -X main.code="+code, "-o", program, "./testdata/program").CombinedOutput(); err != nil {
			f.Fatalf("go build: %v\n%s", err, out)
		}
	}
	p := &process{}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "REDIS_URL="+f.url, "CURFEW_NAMESPACE="+f.q.Namespace())
	cmd.Stderr = p
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		f.Fatal(err)
	}
	p.Child = child
	f.Cleanup(func() {
		p.Signal(syscall.SIGKILL)
		if f.Failed() {
			f.Logf("the log of %s:\n%.1500s", code, p.text())
		}
	})
	return p
}

// await waits until a task has a status.
func (f *fleet) await(id string, status queue.Status) *queue.Record {
	f.Helper()
	var r *queue.Record
	await.Until(f, id+" is "+string(status), func() bool {
		var err error
		if r, err = f.q.Get(f.Context(), id); err != nil {
			f.Fatal(err)
		}
		return r.Status == status
	})
	return r
}

func (f *fleet) approve(id string) {
	f.Helper()
	if r, err := f.q.Resolve(f.Context(), id+".approval", []byte(`"approved"`)); err != nil || !r.Done {
		f.Fatalf("Resolve = %+v, %v", r, err)
	}
}

// awaitDiverged waits until an agent was given back by a program that cannot replay it.
func (f *fleet) awaitDiverged(id string) *queue.Record {
	f.Helper()
	var r *queue.Record
	await.Until(f, id+" is given back", func() bool {
		r = f.await(id, queue.Pending)
		return strings.Contains(r.Fields["release_reason"], "the replay differs")
	})
	return r
}

// Three agents wait for 12 h. The new code schedules one more child before. Then one of them is approved.
func TestADeployDestroysNothing(t *testing.T) {
	f := newFleet(t)
	old := f.deploy("old")
	var ids []string
	for i := range 3 {
		r, err := f.q.Enqueue(t.Context(), queue.Task{Kind: "refund", Payload: fmt.Appendf(nil, `"order %d"`, i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	for _, id := range ids {
		f.await(id, queue.Waiting)
	}
	old.Signal(syscall.SIGTERM)
	<-old.Done()

	unfit := f.deploy("unfit")
	f.approve(ids[0])
	r := f.awaitDiverged(ids[0])
	difference := "call 1 of agent " + ids[0] + " was no child " + ids[0] + ".1 before its wait for all of 1 (approval), and is now child " + ids[0] +
		`.1 of kind mail in queue default with payload "\"order 0\""`
	if r.Retries != 0 || r.Error != "" || !strings.Contains(r.Fields["release_reason"], difference) {
		t.Errorf("the agent is given back for %q after %d retries, error %q: want no retry, and %q", r.Fields["release_reason"], r.Retries, r.Error, difference)
	}
	if r := f.await(ids[0]+".approval", queue.Completed); string(r.Result) != `"approved"` {
		t.Errorf("the approval is %s", r.Result)
	}
	await.Until(t, "the worker logs it", func() bool { return strings.Contains(unfit.text(), "This program cannot replay an agent") })
	if e, err := inspect.Explain(t.Context(), f.q, ids[0]); err != nil || !strings.Contains(e.String(), `with payload \"\\\"order 0\\\"\"`) ||
		!strings.Contains(e.String(), "run a program with code that fits") {
		t.Errorf("Explain = %v, %v, want the whole difference, and what to do", e, err)
	}

	// A program of the old code beside the new one goes on with it.
	old = f.deploy("old")
	if r := f.await(ids[0], queue.Completed); string(r.Result) != `"old: approved [sent]"` {
		t.Errorf("the first agent returned %s", r.Result)
	}
	old.Signal(syscall.SIGTERM)
	<-old.Done()

	// So does mended code, also with an agent whose program was killed.
	f.approve(ids[1])
	f.awaitDiverged(ids[1])
	unfit.Signal(syscall.SIGKILL)
	<-unfit.Done()
	f.deploy("fit")
	f.approve(ids[2])
	for _, id := range ids[1:] {
		if r := f.await(id, queue.Completed); string(r.Result) != `"fit: approved [sent sent]"` || r.Fields["release_reason"] != "" {
			t.Errorf("%s returned %s, and its release_reason is %q", id, r.Result, r.Fields["release_reason"])
		}
		f.await(id+".notice", queue.Completed)
	}
	if findings, err := inspect.Audit(t.Context(), f.q); err != nil || len(findings) > 0 {
		t.Errorf("the audit found %v, %v", findings, err)
	}
}
