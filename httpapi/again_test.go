package httpapi

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/worker"
)

// A client that did not hear the answer to a retry makes it again with the same call. The task runs once more, even if the new task has
// failed meanwhile.
func TestARepeatedRetryMakesOneTask(t *testing.T) {
	for _, partitions := range []int{1, 4} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			s := partitioned(t, partitions)
			id := s.want(201, "POST", "tasks", `{"kind":"k","payload":{"a":1},"timeout":"1h"}`).text("id")
			if a := s.want(409, "POST", "tasks/"+id+"/retry", `{"call":"C1"}`); a.word() != "not_ended" {
				t.Errorf("before its end: %s", a.body)
			}
			s.want(200, "POST", "tasks/"+id+"/cancel", "")
			first := s.want(201, "POST", "tasks/"+id+"/retry", `{"call":"C1"}`)
			s.want(200, "POST", "tasks/"+first.text("id")+"/cancel", "")
			again := s.want(200, "POST", "tasks/"+id+"/retry", `{"call":"C1"}`)
			if again.text("id") != first.text("id") || again.json["changed"] != false || again.text("status") != "" || again.text("retry_of") != id {
				t.Errorf("the repeat is answered with %s, and the first was with %s", again.body, first.body)
			}
			if other := s.want(201, "POST", "tasks/"+id+"/retry", `{"call":"C2"}`); other.text("id") == first.text("id") {
				t.Errorf("another call is answered with %s", other.body)
			}
			if next := s.want(201, "POST", "tasks/"+first.text("id")+"/retry", `{"call":"C1"}`); next.text("id") == first.text("id") {
				t.Errorf("the retry of another task by the same call is answered with %s", next.body)
			}
			if got := (&hand{s: s, name: "w"}).fetch(`,"n":9`, ""); len(got) != 2 {
				t.Errorf("the tasks in line are %v, want two", got)
			}
		})
	}
}

// agents runs a worker of one kind of agent. The worker ends with the test.
func (s *stage) agents(kind string, run func(*agentwait.Agent, int) (string, error)) {
	w := worker.New(s.q, worker.Config{})
	agentwait.Handle(w, kind, run)
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.t.Cleanup(func() {
		stop()
		await.Receive(s.t, ended, "the worker ends")
	})
}

// An agent that could not use a signal requests it again. A repeat of the first signal does not count as the next one.
func TestARepeatedSignalCountsOnce(t *testing.T) {
	s := newStage(t, Config{})
	s.agents("agent", func(a *agentwait.Agent, _ int) (string, error) {
		signal := agentwait.Signal[string](a, "go")
		first, err := agentwait.Await(a, signal)
		if err != nil {
			return "", err
		}
		next, err := agentwait.Await(a, agentwait.NextSignal(a, signal))
		return first + next, err
	})
	id := s.want(201, "POST", "tasks", `{"kind":"agent","payload":1}`).text("id")
	signal := func(status int, body string) answered {
		return s.want(status, "POST", "agents/"+id+"/signals/go", body)
	}
	signal(200, `{"payload":"a","call":"C1"}`)
	await.Until(t, "the agent waits for the next signal", func() bool {
		return s.do("GET", "tasks/"+id+".s-go__2", "").text("status") == "PENDING"
	})
	if again := signal(200, `{"payload":"a","call":"C1"}`); again.json["changed"] != true {
		t.Errorf("the repeat is answered with %s", again.body)
	}
	if a := s.want(200, "GET", "tasks/"+id+".s-go__2", ""); a.text("status") != "PENDING" {
		t.Errorf("after the repeat the next signal is %s", a.body)
	}
	signal(200, `{"payload":"b","call":"C2"}`)
	if a := s.want(200, "GET", "tasks/"+id+"/result?wait=30s", ""); a.text("result") != "ab" {
		t.Errorf("the agent has ended with %s", a.body)
	}
}

// The epoch of an agent grows each time it runs. So a repeated resume that names it does not end the next wait.
func TestARepeatedResumeEndsOneWait(t *testing.T) {
	s := newStage(t, Config{})
	s.agents("agent", func(a *agentwait.Agent, _ int) (string, error) {
		one, err := agentwait.Await(a, agentwait.Signal[string](a, "one"))
		if err != nil {
			return "", err
		}
		two, err := agentwait.Await(a, agentwait.Signal[string](a, "two"))
		return one + two, err
	})
	id := s.want(201, "POST", "tasks", `{"kind":"agent","payload":1}`).text("id")
	waits := func(epoch float64) {
		t.Helper()
		await.Until(t, "the agent waits", func() bool {
			a := s.want(200, "GET", "tasks/"+id, "")
			return a.text("status") == "WAITING" && a.json["epoch"] == epoch
		})
	}
	resume := func(status int, body string) answered { return s.want(status, "POST", "tasks/"+id+"/resume", body) }
	waits(1)
	resume(200, `{"payload":"a","epoch":1}`)
	waits(2)
	before := s.want(200, "GET", "tasks/"+id, "").body
	if again := resume(409, `{"payload":"a","epoch":1}`); again.word() != "not_suspended" || !strings.Contains(again.sentence(), "with the epoch 2") {
		t.Errorf("the repeat is answered with %s", again.body)
	}
	resume(409, `{"payload":"a","epoch":3}`)
	if after := s.want(200, "GET", "tasks/"+id, "").body; after != before {
		t.Errorf("the repeat has changed %s to %s", before, after)
	}
	resume(200, `{"payload":"b","epoch":2}`)
	if a := s.want(200, "GET", "tasks/"+id+"/result?wait=30s", ""); a.text("result") != "ab" {
		t.Errorf("the agent has ended with %s", a.body)
	}
	resume(409, `{"payload":"b","epoch":2}`)
}

// Two workers use the same name for a call. A report of one is no repeat of the other's.
func TestTwoWorkersUseTheSameCall(t *testing.T) {
	s := newStage(t, Config{})
	s.want(201, "POST", "tasks", `{"kind":"k","id":"0-A","max_retries":2,"backoff_delay":"none"}`)
	settle := func(worker string, epoch int, outcome string) string {
		t.Helper()
		return s.want(200, "POST", "workers/"+worker+"/settle", fmt.Sprintf(`{"call":"C1","outcomes":[{"id":"0-A","epoch":%d,%s}]}`, epoch, outcome)).body
	}
	(&hand{s: s, name: "v"}).take("default")
	fail, complete := `"verb":"fail","error":"e","delay":"0s"`, `"verb":"complete","result":1`
	settle("v", 1, fail)
	(&hand{s: s, name: "w"}).take("default")
	if got := settle("w", 2, complete); !strings.Contains(got, "COMPLETED") {
		t.Errorf("the second worker is answered with %s", got)
	}
	if got := settle("v", 1, fail); !strings.Contains(got, "PENDING") {
		t.Errorf("the repeat of the first worker is answered with %s", got)
	}
	if got := settle("v", 2, complete); !strings.Contains(got, `"word":"lost"`) {
		t.Errorf("a report of another's claim is answered with %s", got)
	}
}

// Of two outcomes of one attempt in one request, the first counts, and the other is refused.
func TestTwoOutcomesOfOneAttempt(t *testing.T) {
	for i, row := range []struct{ first, second, status string }{
		{`"verb":"fail","error":"e"`, `"verb":"complete"`, "PENDING"},
		{`"verb":"complete"`, `"verb":"fail","error":"e"`, "COMPLETED"},
		{`"verb":"release"`, `"verb":"complete"`, "PENDING"},
		{`"verb":"complete"`, `"verb":"complete"`, "COMPLETED"},
	} {
		s := newStage(t, Config{})
		s.want(201, "POST", "tasks", `{"kind":"k","id":"0-A","max_retries":2,"backoff_delay":"none"}`)
		(&hand{s: s, name: "w"}).take("default")
		body := fmt.Sprintf(`{"call":"C%d","outcomes":[{"id":"0-A","epoch":1,%s},{"id":"0-A","epoch":1,%s}]}`, i, row.first, row.second)
		for _, when := range []string{"first", "repeated"} {
			got := s.want(200, "POST", "workers/w/settle", body).body
			if !strings.HasPrefix(got, `{"outcomes":[{"id":"0-A","status":"`+row.status+`"},{"id":"0-A","status":"`+row.status+`","refusal":{"word":"lost"`) {
				t.Errorf("%s and %s, %s: %s", row.first, row.second, when, got)
			}
		}
	}
}

// What cannot name a call or a suspension is refused, and changes nothing.
func TestWrongNamesOfCallsAreRefused(t *testing.T) {
	s := newStage(t, Config{})
	id := s.want(201, "POST", "tasks", `{"kind":"k"}`).text("id")
	s.want(200, "POST", "tasks/"+id+"/cancel", "")
	agent := s.want(201, "POST", "tasks", `{"kind":"agent"}`).text("id")
	promise := s.want(201, "POST", "tasks", `{"kind":"p","role":"promise"}`).text("id")
	before := s.want(200, "GET", "stats", "").body
	for _, row := range []struct{ path, body, field string }{
		{"tasks/" + id + "/retry", `{"call":""}`, "call"},
		{"tasks/" + id + "/retry", `{"call":"two words"}`, "call"},
		{"tasks/" + id + "/retry", `{"call":"` + strings.Repeat("x", 101) + `"}`, "call"},
		{"tasks/" + id + "/retry", `{"call":7}`, "call"},
		{"tasks/" + id + "/retry", `{"id":"0-A"}`, "id"},
		{"agents/" + agent + "/signals/go", `{"call":"-"}`, "call"},
		{"tasks/" + agent + "/resume", `{"epoch":0}`, "epoch"},
		{"tasks/" + agent + "/resume", `{"epoch":"1"}`, "epoch"},
		{"tasks/" + promise + "/resume", `{"epoch":1}`, "epoch"},
	} {
		if a := s.want(400, "POST", row.path, row.body); a.field() != row.field {
			t.Errorf("%s %s: %s", row.path, row.body, a.body)
		}
	}
	if after := s.want(200, "GET", "stats", "").body; after != before {
		t.Errorf("something has changed: %s, before %s", after, before)
	}
}
