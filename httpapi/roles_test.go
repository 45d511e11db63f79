package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

const tokens = `# clients
token-of-a-reader read reader
token-of-a-producer produce producer

token-of-a-worker work worker
token-of-an-operator operate operator
`

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func withTokens(t *testing.T) Config {
	t.Helper()
	auth, err := Tokens(tokenFile(t, tokens), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return Config{Auth: []Authenticator{auth}}
}

func as(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer token-of-"+name) }
}

// sampleDefinition is a definition of a flow with one leaf.
const sampleDefinition = `{"id":"sample","spec":{"entrypoint":"main","templates":[{"name":"main","executor":{"type":"k"}}]}}`

// sample returns a request to a route. What it names need not exist.
func sample(r route) (path, body string) {
	path = strings.NewReplacer("{id}", "0-NOSUCHTASK", "{name}", "go", "{queue}", "mail", "{kind}", "k", "{worker}", "w", "{task}", "0-NOSUCHTASK.a").Replace(r.Path)
	if strings.Contains(path, "{") {
		panic("a sample is missing for " + path)
	}
	if r.Body != nil {
		body = map[string]string{"enqueueTask": `{"kind":"k"}`, "enqueueTasks": `{"tasks":[{"kind":"k"}]}`, "rejectPromise": `{"error":"e"}`, "limitQueue": `{"max_running":5}`,
			"resumeRun": `{"node":"n"}`, "putFlow": sampleDefinition, "checkFlow": sampleDefinition,
			"suspendAgent": `{"epoch":1,"wait_for_signal":"go"}`}[r.ID]
		if body == "" {
			body = "{}"
		}
	}
	if r.ID == "cancelTasks" {
		path += "?queue=mail"
	}
	return path, body
}

func TestAChangedTokenFileHoldsAndABrokenOneDoesNot(t *testing.T) {
	path := tokenFile(t, tokens)
	log := &harness.Logs{}
	auth, err := Tokens(path, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, Config{Auth: []Authenticator{auth}})
	s.want(200, "GET", "queues", "", as("a-reader"))
	if err := os.WriteFile(path, []byte("token-of-a-reader reed reader\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Chmod(path, 0o644)
	await.Until(t, "the broken file is noticed", func() bool {
		s.want(200, "GET", "queues", "", as("a-reader"))
		return strings.Contains(log.String(), "did you mean read?") && strings.Contains(log.String(), "chmod 600")
	})
	if err := os.WriteFile(path, []byte("token-of-somebody-else read other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the old token is refused", func() bool { return s.do("GET", "queues", "", as("a-reader")).status == 401 })
	s.want(200, "GET", "queues", "", as("somebody-else"))
	for _, text := range []string{"", "short read a\n", "token-of-a-reader read\n", "token-of-a-reader read a b\n", "token-of-a-reader all a\n", "token-of-a-reader read a\ntoken-of-a-reader read b\n"} {
		if _, err := readTokens(text); err == nil {
			t.Errorf("the file %q is accepted", text)
		}
	}
}

// A promise and a task with a type refuse other results, and are as before.
func TestResultsOfAnotherTypeAreRefused(t *testing.T) {
	s := newStage(t, Config{})
	promise := s.want(201, "POST", "tasks", `{"kind":"p","role":"promise","result_type":"{approved: bool}"}`).text("id")
	for body, why := range map[string]string{`{"result":"yes"}`: "it is a string", `{"result_base64":"/w=="}`: "it is not UTF-8 text", `{}`: "it is empty", `{"result":{"aproved":true}}`: "approved is missing"} {
		if a := s.want(400, "POST", "tasks/"+promise+"/resolve", body); a.word() != "invalid" || !strings.Contains(a.body, "result must be JSON of type {approved: bool}: "+why) {
			t.Errorf("%s: %s, want %s", body, a.body, why)
		}
	}
	if a := s.want(200, "GET", "tasks/"+promise, ""); a.text("status") != "PENDING" || a.text("result_type") != "{approved: bool}" {
		t.Errorf("after the refusals: %s", a.body)
	}
	if a := s.want(200, "GET", "tasks/"+promise+"/explain", ""); a.text("result_type") != "{approved: bool}" {
		t.Errorf("explain: %s", a.body)
	}
	s.want(200, "POST", "tasks/"+promise+"/resolve", `{"result":{"approved":true}}`)
	s.want(400, "POST", "tasks", `{"kind":"p","result_type":"boolean"}`)

	s.want(200, "PUT", "kinds/typed", `{"result_type":"int8"}`)
	id := s.want(201, "POST", "tasks", `{"kind":"typed"}`).text("id")
	s.want(200, "POST", "workers/w1/fetch", `{"seq":1}`)
	settle := func(call, result string) answered {
		return s.want(200, "POST", "workers/w1/settle", `{"call":"`+call+`","outcomes":[{"id":"`+id+`","epoch":1,"verb":"complete","result":`+result+`}]}`)
	}
	if a := settle("a", "300"); !strings.Contains(a.body, `"refusal":{"word":"invalid","sentence":"result must be JSON of type int8: it is out of range"}`) {
		t.Errorf("a result that is refused: %s", a.body)
	}
	if a := settle("b", "30"); !strings.Contains(a.body, `"status":"COMPLETED"`) {
		t.Errorf("a result of the type: %s", a.body)
	}
}

// A suspended agent is resumed, a promise resolved, and each is told if it was too late.
func TestPromisesAreSettledAndTasksCancelledRetriedDeleted(t *testing.T) {
	s := newStage(t, Config{})
	promise := s.want(201, "POST", "tasks", `{"kind":"p","role":"promise"}`).text("id")
	s.want(200, "POST", "tasks/"+promise+"/resolve", `{"result":{"by":"ada"}}`)
	if again := s.want(200, "POST", "tasks/"+promise+"/resolve", `{"result":{"by":"ada"}}`); again.json["changed"] != false {
		t.Errorf("the same again: %s", again.body)
	}
	if other := s.want(409, "POST", "tasks/"+promise+"/resolve", `{"result":1}`); other.word() != "ended" {
		t.Errorf("another result: %s", other.body)
	}
	s.want(409, "POST", "tasks/"+promise+"/reject", `{"error":"no"}`)
	if a := s.want(200, "GET", "tasks/"+promise+"/result", ""); !strings.Contains(a.body, `"result":{"by":"ada"}`) {
		t.Errorf("the result is %s", a.body)
	}
	other := s.want(201, "POST", "tasks", `{"kind":"p","role":"promise"}`).text("id")
	s.want(200, "POST", "tasks/"+other+"/resume", `{"payload_base64":"AA=="}`)
	if a := s.want(200, "GET", "tasks/"+other+"/result", ""); !strings.Contains(a.body, `"result_base64":"AA=="`) {
		t.Errorf("a resumed promise has %s", a.body)
	}
	id := s.want(201, "POST", "tasks", `{"kind":"k","queue":"mail"}`).text("id")
	if a := s.want(409, "POST", "tasks/"+id+"/resume", ""); a.word() != "not_suspended" {
		t.Errorf("a task that is not suspended: %s", a.body)
	}
	s.want(409, "POST", "tasks/"+id+"/retry", "")
	s.want(409, "DELETE", "tasks/"+id, "")
	s.want(200, "POST", "tasks/"+id+"/cancel", `{"reason":"wrong"}`)
	if again := s.want(200, "POST", "tasks/"+id+"/cancel", ""); again.json["changed"] != false || again.text("status") != "CANCELLED" {
		t.Errorf("cancelled again: %s", again.body)
	}
	if late := s.want(409, "POST", "tasks/"+promise+"/cancel", ""); late.word() != "ended" {
		t.Errorf("a completed task is cancelled: %s", late.body)
	}
	if a := s.want(201, "POST", "tasks/"+id+"/retry", ""); a.text("retry_of") != id || a.text("id") == id {
		t.Errorf("retried: %s", a.body)
	}
	if a := s.want(200, "DELETE", "tasks/"+id, ""); a.json["removed_at"] == nil {
		t.Errorf("deleted: %s", a.body)
	}
	for _, path := range []string{"tasks/0-NOSUCH", "tasks/0-NOSUCH/result", "tasks/0-NOSUCH/result?wait=5s", "tasks/0-NOSUCH/explain", "agents/0-NOSUCH"} {
		if a := s.want(404, "GET", path, ""); a.word() != "not_found" {
			t.Errorf("GET %s: %s", path, a.body)
		}
	}
	queuetest.Sound(t, s.q)
}

// If one of two limits is refused, the other is not set.
func TestARefusedLimitSetsNoOther(t *testing.T) {
	s := newStageOf(t, queue.Config{Partitions: 4}, Config{})
	s.enqueue("k", "mail")
	before := redistest.Digest(t, s.q.Client(), s.q.Namespace())
	for body, field := range map[string]string{
		`{"max_running":8,"rate":8,"per_ms":1000,"burst":3}`:   "burst",
		`{"max_running":8,"rate":3,"per_ms":1000}`:             "burst",
		`{"max_running":8,"rate":8,"per_ms":40000000000}`:      "per_ms",
		`{"max_running":8,"rate":9999999999999,"per_ms":0}`:    "per_ms",
		`{"max_running":3,"rate":8,"per_ms":1000}`:             "max_running",
		`{"max_running":8,"rate":-1,"per_ms":1000}`:            "rate",
		`{"max_running":8,"rate":8,"per_ms":1000,"burst":-1}`:  "burst",
		`{"max_running":8,"rate":9007199254740993,"per_ms":1}`: "rate",
		`{"max_running":8,"max_length":-1}`:                    "max_length",
		`{"max_running":8,"max_length":9007199254740993}`:      "max_length",
		`{"max_running":8,"max_length":"x"}`:                   "max_length",
		`{"max_running":8,"max_length":1.5}`:                   "max_length",
	} {
		if a := s.want(400, "POST", "queues/mail/limit", body); a.field() != field {
			t.Errorf("%s: %s, want the field %s", body, a.body, field)
		}
	}
	if after := redistest.Digest(t, s.q.Client(), s.q.Namespace()); after != before {
		t.Error("a limit that was refused has changed something")
	}
}

// A producer that meets a full queue is told when to try again. In a list each task is refused by itself.
func TestAFullQueueIsTooManyRequests(t *testing.T) {
	s := newStage(t, Config{})
	s.enqueue("k", "mail")
	if a := s.want(200, "POST", "queues/mail/limit", `{"max_length":1}`); a.json["max_length"] != 1.0 || a.json["ready"] != 1.0 {
		t.Errorf("%s", a.body)
	}
	a := s.want(429, "POST", "tasks", `{"kind":"k","queue":"mail"}`)
	if a.word() != "queue_full" || a.header.Get("Retry-After") != "5" || !strings.Contains(a.sentence(), "mail has reached its maximum length of 1") {
		t.Errorf("%v %s", a.header, a.body)
	}
	if a := s.want(200, "POST", "tasks/batch", `{"tasks":[{"kind":"k","queue":"mail"},{"kind":"k","queue":"other"}]}`); strings.Count(a.body, `"queue_full"`) != 1 || strings.Count(a.body, `"id":"0-`) != 1 {
		t.Errorf("a list: %s", a.body)
	}
	if a := s.want(200, "POST", "queues/mail/limit", `{"max_length":0}`); a.json["max_length"] != nil {
		t.Errorf("%s", a.body)
	}
	s.want(201, "POST", "tasks", `{"kind":"k","queue":"mail"}`)
}

// An agent that waits for a signal is resumed with a payload, and its wait is over.
func TestASuspendedAgentIsResumed(t *testing.T) {
	s := newStage(t, Config{})
	w := worker.New(s.q, worker.Config{})
	agentwait.Handle(w, "agent", func(a *agentwait.Agent, _ int) (string, error) {
		return agentwait.Await(a, agentwait.Signal[string](a, "approved"))
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		await.Receive(t, ended, "the worker ends")
	})
	agent := s.want(201, "POST", "tasks", `{"kind":"agent","payload":1}`).text("id")
	await.Until(t, "the agent waits", func() bool { return s.want(200, "GET", "tasks/"+agent, "").text("status") == "WAITING" })
	s.want(200, "POST", "tasks/"+agent+"/resume", `{"payload":"yes"}`)
	if a := s.want(200, "GET", "tasks/"+agent+"/result?wait=30s", ""); a.text("result") != "yes" {
		t.Errorf("the agent has ended with %s", a.body)
	}
}

func TestQueuesKindsAndListsAreReadAndControlled(t *testing.T) {
	s := newStage(t, Config{})
	for i := range 5 {
		s.want(201, "POST", "tasks", fmt.Sprintf(`{"kind":"render","queue":"mail","timeout":"1h","payload":{"n":%d}}`, i))
	}
	first := s.want(200, "GET", "tasks?queue=mail&status=PENDING,RUNNING&limit=3&bodies=true", "")
	next := first.text("next")
	if n := len(first.json["tasks"].([]any)); n != 3 || next == "" || !strings.Contains(first.body, `"payload":{"n":4}`) {
		t.Fatalf("the first page has %d tasks: %s", n, first.body)
	}
	if rest := s.want(200, "GET", "tasks?queue=mail&status=PENDING&status=RUNNING&limit=3&cursor="+next, ""); len(rest.json["tasks"].([]any)) != 2 {
		t.Errorf("the next page is %s", rest.body)
	}
	if a := s.want(400, "GET", "tasks?queue=other&cursor="+next, ""); a.field() != "cursor" {
		t.Errorf("a cursor of other filters: %s", a.body)
	}
	if a := s.want(400, "GET", "tasks?bodies=true&limit=101", ""); a.field() != "limit" {
		t.Errorf("a page of too many payloads: %s", a.body)
	}
	if a := s.want(200, "GET", "tasks?bodies=true&hide_payloads=true", ""); strings.Contains(a.body, `"payload"`) {
		t.Errorf("payloads are not hidden: %s", a.body)
	}
	if a := s.want(200, "POST", "queues/mail/pause", ""); a.json["paused"] != 1.0 || a.json["ready"] != 5.0 {
		t.Errorf("paused: %s", a.body)
	}
	s.want(200, "POST", "queues/mail/resume", "")
	if a := s.want(200, "POST", "queues/mail/limit", `{"max_running":7,"rate":10,"per_ms":1000}`); a.json["max_running"] != 7.0 || a.json["per_ms"] != 1000.0 {
		t.Errorf("limited: %s", a.body)
	}
	if a := s.want(200, "POST", "queues/mail/limit", `{"rate":10,"per_ms":1000,"burst":3}`); a.json["max_running"] != 7.0 || a.json["burst"] != 3.0 {
		t.Errorf("a rate with a burst: %s", a.body)
	}
	if a := s.want(200, "POST", "queues/mail/limit", `{"rate":20,"per_ms":1000}`); a.json["burst"] != 20.0 { // as curfew queue limit --rate 20/1s
		t.Errorf("a rate without a burst: %s", a.body)
	}
	for body, field := range map[string]string{`{"rate":5}`: "per_ms", `{"burst":5}`: "rate", `{"per_ms":5}`: "rate", `{}`: "body", `{"rate":5,"per_ms":0}`: "per_ms"} {
		if a := s.want(400, "POST", "queues/mail/limit", body); a.field() != field {
			t.Errorf("%s: %s, want the field %s", body, a.body, field)
		}
	}
	if a := s.want(200, "POST", "queues/mail/limit", `{"rate":0}`); a.json["max_running"] != 7.0 || a.json["rate"] != nil {
		t.Errorf("a limit is removed: %s", a.body)
	}
	if a := s.want(404, "POST", "queues/mial/pause", ""); !strings.Contains(a.sentence(), "did you mean mail?") {
		t.Errorf("a mistyped queue: %s", a.body)
	}
	s.want(200, "POST", "queues/new/pause?force=true", "")
	if a := s.want(200, "PUT", "kinds/render", `{"timeout_ms":30000,"max_retries":3,"backoff_delay_ms":1000,"backoff":"exponential"}`); a.json["fields"].(map[string]any)["timeout_ms"] != 30000.0 {
		t.Errorf("a kind is set: %s", a.body)
	}
	if a := s.want(200, "PUT", "kinds/render", `{"max_retries":3,"backoff_delay_ms":0}`); a.json["fields"].(map[string]any)["backoff_ms"] != 0.0 {
		t.Errorf("retries at once are a default of a kind: %s", a.body)
	}
	if a := s.want(200, "PUT", "kinds/render", `{"timeout_ms":"none","backoff_delay_ms":"none"}`); a.json["fields"].(map[string]any)["timeout_ms"] != "none" {
		t.Errorf("a kind without the default timeout of the namespace: %s", a.body)
	}
	for _, body := range []string{`{"retention_ms":"none"}`, `{"timeout_ms":"never"}`, `{"timeout_ms":-9223372036854775808}`} {
		s.want(400, "PUT", "kinds/render", body)
	}
	s.want(200, "PUT", "kinds/render", `{"hook_success":"s","hook_failure":"f","hook_timeout":"late alerts","hook_cancel":"c"}`)
	if a := s.want(400, "PUT", "kinds/render", `{"hook_timeout":"two words here"}`); !strings.Contains(a.sentence(), "queue of hook timeout") {
		t.Errorf("a bad hook: %s", a.body)
	}
	if a := s.want(200, "GET", "kinds/render", ""); !strings.Contains(string(a.body), `"hook_cancel":"c","hook_failure":"f","hook_success":"s","hook_timeout":"late alerts"`) {
		t.Errorf("a kind with hooks: %s", a.body)
	}
	for _, path := range []string{"queues", "queues/mail", "kinds", "workers", "agents", "deadlines", "deadlines?within=2h&buckets=3", "deadlines/overdue", "stats"} {
		s.want(200, "GET", path, "")
	}
	s.want(404, "GET", "workers/w9", "")
	s.want(404, "POST", "workers/w9/drain", "")
	if a := s.want(200, "POST", "tasks/cancel?queue=mail&limit=2", `{"reason":"sale is over"}`); len(a.json["tasks"].([]any)) != 2 || a.text("next") == "" {
		t.Errorf("two are cancelled: %s", a.body)
	}
	if a := s.want(200, "POST", "queues/mail/drain", ""); a.json["cancelled"] != 3.0 {
		t.Errorf("drained: %s", a.body)
	}
	if a := s.want(400, "POST", "tasks/cancel", ""); !strings.Contains(a.sentence(), "give a filter") {
		t.Errorf("everything is cancelled: %s", a.body)
	}
}

// Hooks of tasks that were cancelled on one page match the filter of the next page, and stay.
func TestThePagesOfACancellationLeaveItsHooks(t *testing.T) {
	s := newStage(t, Config{})
	for i := range 5 { // delayed tasks are listed after those in line, and so after the hooks of these
		s.want(201, "POST", "tasks", `{"kind":"k","queue":"mail","hook_cancel":"cleanup mail"`+[]string{"", `,"delay":"1h"`}[i%2]+`}`)
	}
	done, path := 0, "tasks/cancel?queue=mail&limit=2"
	for next := path; next != ""; {
		a := s.want(200, "POST", next, "")
		done += len(a.json["tasks"].([]any))
		if next = ""; a.text("next") != "" {
			next = path + "&cursor=" + url.QueryEscape(a.text("next"))
		}
	}
	if a := s.want(200, "GET", "queues/mail", ""); done != 5 || a.json["ready"] != 5.0 {
		t.Errorf("%d tasks were cancelled, want 5, and the queue is %s, want 5 hooks in it", done, a.body)
	}
	if a := s.want(400, "POST", path+"&cursor=1@x", ""); a.word() != "invalid" {
		t.Errorf("a bad cursor: %s", a.body)
	}
}

// The worker of a flow makes the requests of its nodes, so no client can enqueue one.
func TestNodesOfFlowsAreNotEnqueued(t *testing.T) {
	s := newStage(t, Config{})
	const task = `{"kind":"flow/http_request","payload":{"url":"http://127.0.0.1:1"}}`
	for path, body := range map[string]string{"tasks": task, "tasks/batch": `{"tasks":[` + task + `]}`} {
		if a := s.do("POST", path, body); !strings.Contains(string(a.body), "is for nodes of flows") || a.status == 201 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, more := range []string{`"id":"0-agent.c"`, `"retry_of":"0-agent"`, `"owner":"0-agent"`} {
		if a := s.do("POST", "tasks", strings.Replace(task, "{", "{"+more+",", 1)); a.status != 400 {
			t.Errorf("%s: %d %s, want 400", more, a.status, a.body)
		}
	}
	if n := enqueued(t, s.q); n != 0 {
		t.Errorf("%d tasks were enqueued", n)
	}
	path, _ := s.agentOf(&hand{s: s, name: "boss"})
	if a := s.do("POST", path+"tasks", `{"tasks":[{"task_kind":"flow/http_request","input":{"url":"http://127.0.0.1:1"}}]}`); a.status != 400 || a.field() != "tasks[0].task_kind" {
		t.Errorf("a child of an agent: %d %s, want 400", a.status, a.body)
	}
}
