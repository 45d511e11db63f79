package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// takeAll fetches tasks of queues until it has n.
func (h *hand) takeAll(n int, queues ...string) map[string]claimed {
	h.s.t.Helper()
	all := map[string]claimed{}
	await.Until(h.s.t, fmt.Sprintf("%s has %d tasks of %v", h.name, n, queues), func() bool {
		for _, c := range h.fetch(fmt.Sprintf(`,"n":%d,"queues":%s`, n, quoted(queues)), "?wait=1s") {
			all[c.ID] = c
		}
		return len(all) == n
	})
	return all
}

// results reads how children of an agent ended: "COMPLETED 7", by place.
func (s *stage) results(path string, ids ...string) (all []string) {
	s.t.Helper()
	a := s.want(200, "POST", path+"tasks/results", `{"task_execution_ids":`+quoted(ids)+`}`)
	var is struct {
		Results []struct {
			ID     string          `json:"task_execution_id"`
			Status string          `json:"status"`
			Output json.RawMessage `json:"output"`
			Error  string          `json:"error"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(a.body), &is); err != nil || len(is.Results) != len(ids) {
		s.t.Fatalf("the results are %s (%v)", a.body, err)
	}
	for i, r := range is.Results {
		if r.ID != ids[i] {
			s.t.Errorf("result %d is of %s, want %s", i, r.ID, ids[i])
		}
		all = append(all, strings.TrimSpace(r.Status+" "+string(r.Output)+r.Error))
	}
	return all
}

// refusedForOthers makes each request that reads, cancels or waits for tasks of somebody else. All are refused, and change nothing.
func (s *stage) refusedForOthers(path string, epoch int64, mine, theirs string) {
	s.t.Helper()
	before := redistest.Digest(s.t, s.q.Client(), s.q.Namespace())
	for _, r := range []struct{ path, body string }{
		{"tasks/" + theirs + "/cancel", `{"reason":"mine now"}`},
		{"tasks/results", `{"task_execution_ids":` + quoted([]string{mine, theirs}) + `}`},
		{"suspend", fmt.Sprintf(`{"epoch":%d,"worker":"boss","wait_for_task":%q}`, epoch, theirs)},
	} {
		if a := s.want(403, "POST", path+r.path, r.body); a.word() != "not_owner" || a.sentence() != "Task not owned by agent" {
			s.t.Errorf("%s is answered with %s", r.path, a.body)
		}
	}
	if redistest.Digest(s.t, s.q.Client(), s.q.Namespace()) != before {
		s.t.Error("requests about tasks of somebody else have changed something")
	}
}

// Agents, their children and a worker of the children have HTTP only. Several agents are under way at once, in several partitions.
func TestAgentsAndWorkersWithHTTPOnly(t *testing.T) {
	s := partitioned(t, 4)
	const agents = 8
	boss, hands := &hand{s: s, name: "boss"}, &hand{s: s, name: "hands"}
	for range agents {
		s.enqueue("agent", "agents")
	}
	claims := boss.takeAll(agents, "agents")
	children := map[string][]string{} // of each agent: a runs and is cancelled, b completes, c has a queue of its own
	partitions := map[int]bool{}
	for id := range claims {
		partition, err := queue.PartitionOf(id)
		if err != nil {
			t.Fatal(err)
		}
		partitions[partition] = true
		path := "agents/" + id + "/"
		children[id] = s.schedule(path, `{"task_kind":"c","input":{"n":1},"idempotency_key":"a"},{"task_kind":"c","input_base64":"AP8=","timeout_ms":60000},{"task_kind":"c","queue":"fast","max_retries":0}`)
		for i, want := range []string{"children", "children", "fast"} {
			if child := s.want(200, "GET", "tasks/"+children[id][i], ""); child.text("queue") != want || child.text("status") != "PENDING" {
				t.Errorf("child %d is %s, want the queue %s", i, child.body, want)
			}
		}
		s.want(400, "POST", path+"tasks/results", `{"agent_execution_id":"0-OTHER","task_execution_ids":`+quoted(children[id])+`}`)
	}
	if len(partitions) < 2 {
		t.Fatalf("all agents are in the partitions %v", partitions)
	}
	running := hands.takeAll(2*agents, "children")
	cancelled := map[string]bool{}
	names := slices.Sorted(maps.Keys(claims))
	for i, id := range names {
		path, mine := "agents/"+id+"/", children[id]
		s.refusedForOthers(path, claims[id].Epoch, mine[0], children[names[(i+1)%agents]][0])
		if got := strings.Join(s.results(path, mine...), ", "); got != "RUNNING, RUNNING, PENDING" {
			t.Errorf("the children are %s", got)
		}
		wait := fmt.Sprintf(`{"agent_execution_id":%q,"epoch":%d,"worker":"boss","reason":"Waiting for all tasks to settle","wait_for_tasks":{"task_ids":%s,"mode":"settled"}}`, id, claims[id].Epoch, quoted(mine))
		if a := s.want(200, "POST", path+"suspend", wait); a.text("status") != "WAITING" {
			t.Fatalf("suspend is answered with %s", a.body)
		}
		if about := s.want(200, "GET", "agents/"+id, ""); !strings.Contains(about.body, "Waiting for all tasks to settle") || strings.Count(about.body, mine[2]) == 0 {
			t.Errorf("the waiting agent is %s", about.body)
		}
		cancelled[mine[0]] = true
		cancel := path + "tasks/" + mine[0] + "/cancel"
		if a := s.want(200, "POST", cancel, `{"reason":"no longer needed"}`); a.body != `{"cancelled":true,"status":"CANCELLED"}`+"\n" {
			t.Errorf("cancel of a running child is answered with %s", a.body)
		}
		if a := s.want(200, "POST", cancel, ""); a.body != `{"cancelled":false,"status":"CANCELLED"}`+"\n" {
			t.Errorf("cancel again is answered with %s", a.body)
		}
	}
	for id, c := range running {
		if cancelled[id] && string(c.Payload) != `{"n":1}` {
			t.Errorf("the payload of %s is %s", id, c.Payload)
		}
		a := s.want(200, "POST", "workers/hands/settle", fmt.Sprintf(`{"call":"end-%s","outcomes":[{"id":%q,"epoch":%d,"verb":"complete","result":{"n":2}}]}`, id, id, c.Epoch))
		want := `"status":"COMPLETED"}`
		if cancelled[id] {
			want = `"status":"CANCELLED","refusal":{"word":"lost"`
		}
		if !strings.Contains(a.body, want) {
			t.Errorf("the end of %s is answered with %s, want %s", id, a.body, want)
		}
	}
	for _, c := range hands.takeAll(agents, "fast") {
		hands.settle(c, "FAILED", `"verb":"fail","error":"out of paper"`)
	}
	resumed := boss.takeAll(agents, "agents")
	for id, c := range resumed {
		path, mine := "agents/"+id+"/", children[id]
		if got, want := strings.Join(s.results(path, mine...), ", "), `CANCELLED no longer needed, COMPLETED {"n":2}, FAILED out of paper`; got != want {
			t.Errorf("the children of %s are %s, want %s", id, got, want)
		}
		for i, status := range []string{"CANCELLED", "COMPLETED", "FAILED"} {
			if a := s.want(200, "POST", path+"tasks/"+mine[i]+"/cancel", ""); a.json["cancelled"] != false || a.text("status") != status {
				t.Errorf("cancel of a child that is %s is answered with %s", status, a.body)
			}
		}
		boss.settle(c, "COMPLETED", `"verb":"complete","result":"done"`)
	}
	queuetest.Sound(t, s.q)
}

// A signal that is sent over HTTP reaches an agent of a Go worker, whether it comes before the agent waits or after.
func TestASignalOverHTTPReachesAnAgentOfAGoWorker(t *testing.T) {
	s := partitioned(t, 4)
	w := worker.New(s.q, worker.Config{})
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ int) (string, error) {
		first, err := agentwait.Await(a, agentwait.Signal[string](a, "first"))
		if err != nil {
			return "", err
		}
		second, err := agentwait.Await(a, agentwait.Signal[map[string]int](a, "second"))
		return fmt.Sprint(first, " ", second["n"]), err
	})
	var agents []string
	for i := range 6 {
		id := s.want(201, "POST", "tasks", `{"kind":"agent","payload":1}`).text("id")
		agents = append(agents, id)
		if i%2 == 0 { // before the agent runs
			s.signal(id, "first", `"early"`)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		await.Receive(t, ended, "the worker ends")
	})
	for i, id := range agents {
		want := "early 7"
		if i%2 == 1 {
			want = "late 7"
			s.awaitWaiting(id, "first")
			s.signal(id, "first", `"late"`)
		}
		s.awaitWaiting(id, "second")
		s.want(404, "POST", "agents/0-NOSUCHAGENT/signals/second", `{"payload":{"n":1}}`)
		s.want(400, "POST", "agents/"+id+"/signals/not%20one", `{"payload":{"n":1}}`)
		s.signal(id, "third", `1`) // nobody waits for it
		if status := s.want(200, "GET", "tasks/"+id, "").text("status"); status != "WAITING" {
			t.Errorf("a signal with another name makes the agent %s", status)
		}
		s.signal(id, "second", `{"n":7}`)
		if a := s.want(200, "GET", "tasks/"+id+"/result?wait=30s", ""); a.text("result") != want {
			t.Errorf("agent %d has ended with %s, want %s", i, a.body, want)
		}
		if a := s.want(409, "POST", "agents/"+id+"/signals/late", `{"payload":1}`); a.word() != "owner_ended" {
			t.Errorf("a signal to an agent that has ended is answered with %s", a.body)
		}
	}
}

// signal sends a signal, which must be new. The same again says so, and another payload is refused.
func (s *stage) signal(agent, name, payload string) {
	s.t.Helper()
	path := "agents/" + agent + "/signals/" + name
	if a := s.want(200, "POST", path, `{"payload":`+payload+`}`); a.json["changed"] != true {
		s.t.Errorf("the signal %s is answered with %s", name, a.body)
	}
	if a := s.want(200, "POST", path, `{"payload":`+payload+`}`); a.json["changed"] != false {
		s.t.Errorf("the signal %s again is answered with %s", name, a.body)
	}
	s.want(409, "POST", path, `{"payload":"something else"}`)
}

// awaitWaiting returns when an agent waits for a signal.
func (s *stage) awaitWaiting(agent, signal string) {
	s.t.Helper()
	await.Until(s.t, "the agent waits for "+signal, func() bool {
		about := s.want(200, "GET", "agents/"+agent, "")
		return about.text("status") == "WAITING" && strings.Contains(about.body, ".s-"+signal)
	})
}
