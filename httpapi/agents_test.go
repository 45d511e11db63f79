package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// agentOf starts an agent: a task of the queue agents that a worker has fetched.
func (s *stage) agentOf(h *hand) (path string, claim claimed) {
	s.t.Helper()
	id := s.enqueue("agent", "agents")
	claim = h.take("agents")
	if claim.ID != id {
		s.t.Fatalf("fetched %s, want %s", claim.ID, id)
	}
	return "agents/" + id + "/", claim
}

// schedule schedules children a, b and c in one request.
func (s *stage) schedule(path string, members string) (children []string) {
	s.t.Helper()
	a := s.want(200, "POST", path+"tasks", `{"queue":"children","tasks":[`+members+`]}`)
	var is childLines
	if err := json.Unmarshal([]byte(a.body), &is); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range is.Results {
		children = append(children, r.ID)
	}
	return children
}

const three = `{"task_kind":"c","input":1,"idempotency_key":"a"},{"task_kind":"c","input":2,"idempotency_key":"b b"},{"task_kind":"c","input":3,"idempotency_key":"c"}`

// sweep runs a reaper until the test ends.
func (s *stage) sweep() {
	ended := make(chan error, 1)
	ctx, stop := contextOf(s.t)
	go func() { ended <- reaper.New(s.q, reaper.Config{}).Run(ctx) }()
	s.t.Cleanup(func() { stop(); <-ended })
}

func quoted(list []string) string {
	text, _ := json.Marshal(list)
	return string(text)
}

// A whole agent. Each request is made twice, as if its answer had been lost; the second one changes nothing.
func TestAnAgentWaitsForAllItsChildren(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			s := partitioned(t, partitions)
			twice := func(path, body string) answered {
				t.Helper()
				first := s.want(200, "POST", path, body)
				if again := s.want(200, "POST", path, body); again.body != first.body {
					t.Errorf("%s again: %s, want %s", path, again.body, first.body)
				}
				return first
			}
			boss := &hand{s: s, name: "boss"}
			path, claim := s.agentOf(boss)
			children := s.schedule(path, three)
			again := s.want(200, "POST", path+"tasks", `{"queue":"children","tasks":[`+three+`]}`)
			if strings.Count(again.body, `"idempotency_key_used":true,"idempotency_key_new":false`) != 3 || !strings.Contains(again.body, children[1]) {
				t.Errorf("the same children again: %s", again.body)
			}
			wait := fmt.Sprintf(`{"epoch":%d,"worker":"boss","reason":"Waiting for all","wait_for_tasks":{"task_ids":%s,"mode":"WAIT_MODE_ALL"},"user_state":{"step":1}}`, claim.Epoch, quoted(children))
			if a := twice(path+"suspend", wait); a.text("status") != "WAITING" {
				t.Fatalf("suspend is answered with %s", a.body)
			}
			about := s.want(200, "GET", "tasks/"+claim.ID, "")
			if !strings.Contains(about.body, "Waiting for all") || about.text("status") != "WAITING" {
				t.Errorf("the waiting agent is %s", about.body)
			}
			other := &hand{s: s, name: "other"}
			for i := range 3 {
				other.complete("children", fmt.Sprintf(`{"n":%d}`, i))
			}
			claim = boss.take("agents")
			if claim.Epoch != 2 {
				t.Errorf("the agent is resumed as %+v", claim)
			}
			memory := s.want(200, "GET", path+"checkpoint", "")
			if !strings.Contains(memory.body, `"user_state":{"step":1}`) || !strings.Contains(memory.body, `"reason":"satisfied"`) {
				t.Errorf("the agent remembers %s", memory.body)
			}
			results := twice(path+"tasks/results", `{"task_execution_ids":`+quoted(children)+`}`)
			if strings.Count(results.body, `"status":"COMPLETED","output":{"n":`) != 3 {
				t.Errorf("the results are %s", results.body)
			}
			boss.settle(claim, "COMPLETED", `"verb":"complete","result":"done"`)
			if late := s.want(409, "POST", path+"suspend", strings.Replace(wait, "_ALL", "_ANY", 1)); late.word() != "not_held" {
				t.Errorf("an old attempt suspends: %s", late.body)
			}
		})
	}
}

// With ANY the first end wakes the agent. A timeout of a child is such an end, and so is the timeout of the wait itself.
func TestAnAgentWaitsForAnyAndForTimeouts(t *testing.T) {
	s := newStage(t, Config{})
	s.sweep()
	boss := &hand{s: s, name: "boss"}
	path, claim := s.agentOf(boss)
	children := s.schedule(path, `{"task_kind":"c","timeout_ms":200,"idempotency_key":"short"},{"task_kind":"c","idempotency_key":"long"}`)
	s.want(200, "POST", path+"suspend", fmt.Sprintf(`{"epoch":1,"worker":"boss","wait_for_tasks":{"task_ids":%s,"mode":"ANY"}}`, quoted(children)))
	if claim = boss.take("agents"); claim.Epoch != 2 {
		t.Fatalf("the agent is resumed as %+v", claim)
	}
	if memory := s.want(200, "GET", path+"checkpoint", ""); !strings.Contains(memory.body, `"winner":"`+children[0]+`"`) || !strings.Contains(memory.body, `"settled":["`+children[0]+`"]`) {
		t.Errorf("the wait ended as %s", memory.body)
	}
	results := s.want(200, "POST", path+"tasks/results", `{"task_execution_ids":`+quoted(children)+`}`)
	if !strings.Contains(results.body, `"status":"FAILED","error":"Task exceeded deadline"`) || !strings.Contains(results.body, `"status":"PENDING"}`) {
		t.Errorf("the results are %s", results.body)
	}
	s.want(200, "POST", path+"suspend", fmt.Sprintf(`{"epoch":2,"worker":"boss","wait_for_task":%q,"timeout_ms":200,"on_pending":"keep"}`, children[1]))
	boss.take("agents")
	if memory := s.want(200, "GET", path+"checkpoint", ""); !strings.Contains(memory.body, `"reason":"timed_out"`) {
		t.Errorf("the second wait ended as %s", memory.body)
	}
	cancel := path + "tasks/" + children[1] + "/cancel"
	if a := s.want(200, "POST", cancel, `{"reason":"too late"}`); a.body != `{"cancelled":true,"status":"CANCELLED"}`+"\n" {
		t.Errorf("cancel is answered with %s", a.body)
	}
	if a := s.want(200, "POST", cancel, ""); a.body != `{"cancelled":false,"status":"CANCELLED"}`+"\n" {
		t.Errorf("cancel again is answered with %s", a.body)
	}
	if a := s.want(200, "POST", path+"suspend", fmt.Sprintf(`{"epoch":3,"worker":"boss","wait_for_tasks":{"task_ids":%s}}`, quoted(children))); a.text("status") != "RUNNING" || !strings.Contains(a.body, `"settled":["`) {
		t.Errorf("a wait for tasks that have ended is answered with %s", a.body)
	}
}

// A signal resumes the agent that waits for it, and one that comes before the wait is kept.
func TestASignalResumesAnAgent(t *testing.T) {
	s := newStage(t, Config{})
	boss := &hand{s: s, name: "boss"}
	path, _ := s.agentOf(boss)
	wait := `{"epoch":%d,"worker":"boss","wait_for_signal":%q}`
	if a := s.want(200, "POST", path+"suspend", fmt.Sprintf(wait, 1, "go")); a.text("status") != "WAITING" {
		t.Fatalf("suspend is answered with %s", a.body)
	}
	sent := s.want(200, "POST", path+"signals/go", `{"payload":{"by":"anna"}}`)
	promise := strings.TrimSuffix(strings.TrimPrefix(path, "agents/"), "/") + ".s-go"
	if sent.json["changed"] != true {
		t.Errorf("the signal is answered with %s", sent.body)
	}
	s.want(409, "POST", path+"signals/go", `{"payload":{"by":"bob"}}`)
	boss.take("agents")
	if r := s.want(200, "POST", path+"tasks/results", fmt.Sprintf(`{"task_execution_ids":[%q]}`, promise)); !strings.Contains(r.body, `"output":{"by":"anna"}`) {
		t.Errorf("the agent reads %s", r.body)
	}
	s.want(200, "POST", path+"signals/early", `{"payload_base64":"AP8="}`)
	if a := s.want(200, "POST", path+"suspend", fmt.Sprintf(wait, 2, "early")); a.text("status") != "RUNNING" || !strings.Contains(a.body, `"winner":"`) {
		t.Errorf("a wait for a signal that came before is answered with %s", a.body)
	}
}

// An agent that crashes after any of its requests runs again and ends with the same result; no child runs twice.
func TestAnAgentThatCrashesAnywhereEndsOnce(t *testing.T) {
	for crash := range 6 {
		t.Run(fmt.Sprint("after request ", crash), func(t *testing.T) {
			s := newStage(t, Config{})
			s.sweep()
			id := s.enqueue("agent", "agents")
			path := "agents/" + id + "/"
			left := crash
			ran := 0
			for segment := 1; ; segment++ {
				if segment > 8 {
					t.Fatal("the agent does not end")
				}
				boss := &hand{s: s, name: fmt.Sprint("boss", segment)}
				crashed := func() bool { left--; return left < 0 && left > -2 }
				got := boss.fetch(`,"queues":["agents"],"lease_ms":200`, "?wait=30s")
				if len(got) == 0 || crashed() {
					continue
				}
				children := s.schedule(path, three)
				if crashed() {
					continue
				}
				a := s.do("POST", path+"suspend", fmt.Sprintf(`{"epoch":%d,"worker":%q,"wait_for_tasks":{"task_ids":%s}}`, got[0].Epoch, boss.name, quoted(children)))
				if a.status == 409 { // too slow: the lease has ended
					continue
				}
				if a.text("status") == "WAITING" {
					crashed() // after this request nothing is lost: another worker runs the children
					other := &hand{s: s, name: fmt.Sprint("other", segment)}
					for _, c := range other.fetch(`,"n":9,"queues":["children"]`, "") {
						ran++
						other.settle(c, "COMPLETED", `"verb":"complete","result":`+string(c.Payload))
					}
					continue
				}
				if crashed() {
					continue
				}
				results := s.want(200, "POST", path+"tasks/results", `{"task_execution_ids":`+quoted(children)+`}`)
				if crashed() {
					continue
				}
				if !strings.Contains(results.body, `"output":3`) {
					t.Fatalf("the results are %s", results.body)
				}
				s.do("POST", "workers/"+boss.name+"/settle", fmt.Sprintf(`{"call":"end","outcomes":[{"id":%q,"epoch":%d,"verb":"complete","result":6}]}`, id, got[0].Epoch))
				if r, err := s.q.Get(t.Context(), id); err == nil && r.Status == queue.Completed {
					break
				}
			}
			if ran != 3 {
				t.Errorf("%d children ran, want 3", ran)
			}
		})
	}
}

// The requests of an agent take at most 4 calls of Redis, for 10 children and for 100.
func TestAnAgentTakesFewCalls(t *testing.T) {
	redistest.NoRace(t, "it counts calls, and one that the detector makes slow is made again")
	for _, n := range []int{10, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			server := redistest.Start(t)
			s := newStageOn(t, server.Client(t), "calls", Config{Silence: time.Hour}) // the looks at Redis are no calls of the agent
			boss, other := &hand{s: s, name: "boss"}, &hand{s: s, name: "other"}
			path, _ := s.agentOf(boss)
			var members []string
			for i := range n {
				members = append(members, fmt.Sprintf(`{"task_kind":"c","idempotency_key":"%d"}`, i))
			}
			calls := s.scripts()
			children := s.schedule(path, strings.Join(members, ","))
			s.want(200, "POST", path+"suspend", `{"epoch":1,"worker":"boss","wait_for_tasks":{"task_ids":`+quoted(children)+`}}`)
			made := s.scripts() - calls
			for _, c := range other.fetch(`,"n":500,"queues":["children"]`, "") {
				other.settle(c, "COMPLETED", `"verb":"complete"`)
			}
			boss.take("agents")
			calls = s.scripts()
			s.want(200, "POST", path+"tasks/results", `{"task_execution_ids":`+quoted(children)+`}`)
			if made += s.scripts() - calls; made != 4 {
				t.Errorf("%d children take %d calls of Redis, want 4", n, made)
			}
		})
	}
}

// An agent reads and cancels its own children only. If one task is another's, the whole call is refused.
func TestAnAgentDoesNotReachOthersTasks(t *testing.T) {
	s := newStage(t, Config{})
	boss := &hand{s: s, name: "boss"}
	path, _ := s.agentOf(boss)
	mine := s.schedule(path, three)
	theirPath, _ := s.agentOf(boss)
	theirs := s.schedule(theirPath, three)
	root := s.enqueue("k", "default")
	for _, other := range []string{theirs[0], root, mine[0] + ".x"} {
		for path, body := range map[string]string{
			path + "tasks/results":              `{"task_execution_ids":` + quoted([]string{mine[0], other}) + `}`,
			path + "tasks/" + other + "/cancel": `{}`,
			path + "suspend":                    `{"epoch":1,"worker":"boss","wait_for_tasks":{"task_ids":` + quoted([]string{mine[0], other}) + `}}`,
		} {
			if a := s.want(403, "POST", path, body); a.sentence() != "Task not owned by agent" || strings.Contains(a.body, "PENDING") {
				t.Errorf("%s of %s is answered with %s", path, other, a.body)
			}
		}
	}
	for _, id := range append(theirs, root) {
		if r := s.want(200, "GET", "tasks/"+id, ""); r.text("status") != "PENDING" {
			t.Errorf("%s is %s", id, r.text("status"))
		}
	}
}

func TestWrongRequestsOfAgentsChangeNothing(t *testing.T) {
	s := partitioned(t, 2)
	boss := &hand{s: s, name: "boss"}
	path, claim := s.agentOf(boss)
	child := s.schedule(path, three)[0]
	promise, err := s.q.Enqueue(t.Context(), queue.Task{Kind: "k", Promise: true})
	if err != nil {
		t.Fatal(err)
	}
	before := redistest.Digest(t, s.q.Client(), s.q.Namespace())
	held := `{"epoch":1,"worker":"boss",`
	for _, row := range []struct{ path, body, field string }{
		{"suspend", `{"worker":"boss","wait_for_task":"` + child + `"}`, "epoch"},
		{"suspend", held + `"reason":"x"}`, "wait_for_tasks"},
		{"suspend", held + `"wait_for_task":"` + child + `","wait_for_signal":"s"}`, "wait_for_tasks"},
		{"suspend", held + `"wait_for_tasks":{"task_ids":[]}}`, "wait_for_tasks.task_ids"},
		{"suspend", held + `"wait_for_tasks":{"task_ids":["x"]}}`, "wait_for_tasks.task_ids[0]"},
		{"suspend", held + `"wait_for_tasks":{"task_ids":["` + child + `"],"mode":"SOME"}}`, "wait_for_tasks.mode"},
		{"suspend", held + `"wait_for_tasks":{"task_ids":["` + child + `"],"mode":"n_of_m","need":2}}`, "wait_for_tasks.need"},
		{"suspend", held + `"wait_for_tasks":{"task_ids":["` + child + `"],"need":1}}`, "wait_for_tasks.need"},
		{"suspend", held + `"wait_for_signal":"a b"}`, "wait_for_signal"},
		{"suspend", held + `"wait_for_task":"` + child + `","timeout":"0s"}`, "timeout"},
		{"suspend", held + `"wait_for_task":"` + child + `","timeout":"1s","timeout_ms":1}`, "timeout"},
		{"suspend", held + `"wait_for_task":"` + child + `","on_pending":"drop"}`, "on_pending"},
		{"suspend", held + `"wait_for_task":"` + child + `","reason":"a\nb"}`, "reason"},
		{"suspend", held + `"wait_for_task":"` + child + `","call":"a b"}`, "call"},
		{"tasks", `{"tasks":[]}`, "tasks"},
		{"tasks", `{"tasks":[{"task_kind":"a b"}]}`, "tasks[0].task_kind"},
		{"tasks", `{"tasks":[{"input":1}]}`, "tasks[0].task_kind"},
		{"tasks", `{"tasks":[{"task_kind":"c"},{"task_kind":"c","input":1,"input_base64":"AA=="}]}`, "tasks[1].input"},
		{"tasks", `{"tasks":[{"task_kind":"c","idempotency_key":""}]}`, "tasks[0].idempotency_key"},
		{"tasks", `{"tasks":[{"task_kind":"c","timeout_ms":0}]}`, "tasks[0].timeout_ms"},
		{"tasks", `{"tasks":[{"task_kind":"c","max_retries":-1}]}`, "tasks[0].max_retries"},
		{"tasks", `{"tasks":[{"task_kind":"c","kind":"d"}]}`, "tasks[0].kind"},
		{"tasks/results", `{"task_execution_ids":[]}`, "task_execution_ids"},
		{"tasks/results", `{"task_execution_ids":["x"]}`, "task_execution_ids[0]"},
		{"tasks/7-A/cancel", `{}`, "task"},
		{"checkpoint", `{"epoch":1,"worker":"boss"}`, "user_state"},
	} {
		if a := s.want(400, "POST", path+row.path, row.body); a.field() != row.field || a.word() != "invalid" {
			t.Errorf("%s %s is answered with %s, want the field %s", row.path, row.body, a.body, row.field)
		}
	}
	if a := s.want(400, "POST", path+"tasks/results", `{"task_execution_ids":[]}`); a.sentence() != "select requires at least one future" {
		t.Errorf("no ids are answered with %s", a.body)
	}
	for _, epoch := range []int64{claim.Epoch + 1, 99} {
		if a := s.want(409, "POST", path+"suspend", fmt.Sprintf(`{"epoch":%d,"worker":"boss","wait_for_task":%q}`, epoch, child)); a.word() != "not_held" {
			t.Errorf("the epoch %d is answered with %s", epoch, a.body)
		}
	}
	s.want(409, "POST", path+"checkpoint", `{"epoch":2,"worker":"boss","user_state":1}`)
	if a := s.want(400, "POST", "agents/"+promise.ID+"/signals/go", `{}`); !strings.Contains(a.sentence(), "agent is a promise: a signal is for an agent") || a.field() != "agent" {
		t.Errorf("a signal to a promise is answered with %s", a.body)
	}
	for _, missing := range []string{"agents/0-NONE/", "agents/1-NONE/"} {
		s.want(404, "POST", missing+"tasks", `{"tasks":[{"task_kind":"c"}]}`)
		s.want(404, "POST", missing+"signals/x", `{}`)
		s.want(404, "GET", missing+"checkpoint", "")
		s.want(404, "POST", missing+"suspend", `{"epoch":1,"worker":"w","wait_for_task":"`+strings.Split(missing, "/")[1]+`.a"}`)
	}
	if after := redistest.Digest(t, s.q.Client(), s.q.Namespace()); after != before {
		t.Error("requests that were refused have changed something")
	}
}

// What an agent stores is there when it runs again.
func TestACheckpointIsKept(t *testing.T) {
	s := newStage(t, Config{})
	boss := &hand{s: s, name: "boss"}
	path, claim := s.agentOf(boss)
	s.want(200, "POST", path+"checkpoint", `{"epoch":1,"worker":"boss","user_state":{"n":1}}`)
	s.want(200, "POST", path+"checkpoint", `{"epoch":1,"worker":"boss","user_state":{"n":2}}`)
	boss.settle(claim, "PENDING", `"verb":"release"`)
	boss.take("agents")
	if a := s.want(200, "GET", path+"checkpoint", ""); a.body != `{"user_state":{"n":2}}`+"\n" {
		t.Errorf("the agent remembers %s", a.body)
	}
}
