package curfewtest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

type refund struct{ Order string }

// handleRefund registers the handler of a refund. The new code notifies the customer before the decision.
func handleRefund(w *worker.Worker, notify func(a *agentwait.Agent, order string)) {
	agentwait.Handle(w, "refund", func(a *agentwait.Agent, in refund) (bool, error) {
		notify(a, in.Order)
		return agentwait.Await(a, agentwait.Promise[bool](a, "approval", 12*time.Hour))
	})
}

func notifyNobody(*agentwait.Agent, string) {}

func notifyByMail(a *agentwait.Agent, order string) {
	agentwait.Schedule[string](a, order, queue.Task{Kind: "mail"})
}

func notifyByNamedMail(a *agentwait.Agent, order string) {
	agentwait.Schedule[string](a, order, queue.Task{Kind: "mail", ID: "notice"})
}

// recorded writes the recording of an agent of the old code, as `curfew agent export` does.
func recorded(t *testing.T) (file string) {
	c := curfewtest.New(t)
	handleRefund(c.Worker, notifyNobody)
	id := c.Enqueue(queue.Task{Kind: "refund", Payload: []byte(`{"Order":"17"}`)}).ID
	c.Drain()
	r, err := agentwait.Export(t.Context(), c.Queue, id)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "agents.jsonl")
	if err := os.WriteFile(file, append(line, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAssertReplays(t *testing.T) {
	file := recorded(t)
	for name, c := range map[string]struct {
		notify func(a *agentwait.Agent, order string)
		says   string
	}{
		"the same code":               {notifyNobody, ""},
		"one more child with a name":  {notifyByNamedMail, ""},
		"one more child, by position": {notifyByMail, "cannot continue with this code: the replay differs from what the agent did before: call 1 of agent 0-"},
	} {
		said := spied(t, curfewtest.Config{}, func(s *curfewtest.Stage) {
			handleRefund(s.Worker, c.notify)
			if n := s.AssertReplays(file); n != 1 {
				t.Errorf("%s: %d agents were replayed, want 1", name, n)
			}
			s.AssertNothingLeft()
		})
		if c.says == "" && said != "" || !strings.Contains(said, c.says) {
			t.Errorf("%s: the test reports %q, want %q", name, said, c.says)
		}
	}
	for name, file := range map[string]string{"no file": filepath.Join(t.TempDir(), "none"), "another file": "replay_test.go"} {
		if said := spied(t, curfewtest.Config{}, func(s *curfewtest.Stage) { s.AssertReplays(file) }); !strings.HasPrefix(said, "fatal: AssertReplays: ") {
			t.Errorf("%s: the test reports %q", name, said)
		}
	}
}
