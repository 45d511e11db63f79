package httpapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

func TestATaskIsEnqueuedReadAndItsResultAwaited(t *testing.T) {
	s := newStage(t, Config{})
	made := s.want(201, "POST", "tasks", `{"kind":"render","payload":{"page": "index", "n": 12345678901234567890},"timeout":"1h","idempotency_key":"a"}`)
	id := made.text("id")
	if again := s.want(200, "POST", "tasks", `{"kind":"render","payload":{"page": "index", "n": 12345678901234567890},"timeout":"1h","idempotency_key":"a"}`); again.text("id") != id || again.json["new"] != false {
		t.Errorf("the same again is answered with %s, want %s", again.body, id)
	}
	got := s.want(200, "GET", "tasks/"+id, "")
	if !strings.Contains(got.body, `"payload":{"page":"index","n":12345678901234567890}`) || got.text("status") != "PENDING" {
		t.Errorf("the task is %s", got.body)
	}
	if live := s.want(202, "GET", "tasks/"+id+"/result", ""); live.text("status") != "PENDING" {
		t.Errorf("the result of a live task is %s", live.body)
	}
	results := make(chan answered, 1)
	go func() { results <- s.do("GET", "tasks/"+id+"/result?wait=30s", "") }()
	await.Until(t, "the request waits", func() bool { return len(s.server.waiting) == 1 })
	w := &queuetest.Taker{Q: s.q, Worker: "w"}
	claim := w.Take(t, id, "default")
	w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Complete, Result: []byte(`{"ok": true}`)})
	if a := await.Receive(t, results, "the result"); a.status != 200 || a.body != `{"id":"`+id+`","status":"COMPLETED","result":{"ok":true}}`+"\n" {
		t.Errorf("the result is answered with %d %s", a.status, a.body)
	}
}

func TestAPayloadIsJSONOrBase64(t *testing.T) {
	s := newStage(t, Config{})
	for _, row := range []struct{ given, want string }{
		{`"payload":[1.0,2e3]`, `"payload":[1.0,2e3]`},
		{`"payload":"text"`, `"payload":"text"`},
		{`"payload":null`, `"payload":null`},
		{`"payload_base64":"AP8="`, `"payload_base64":"AP8="`},
		{`"payload_base64":"aGVsbG8="`, `"payload_base64":"aGVsbG8="`}, // the text hello, which is not JSON
		{`"payload_base64":"MTI="`, `"payload":12`},
		{`"payload":{"payload":"1","result":"2"},"headers":{"payload":"3"}`, `"payload":{"payload":"1","result":"2"}`},
	} {
		id := s.want(201, "POST", "tasks", `{"kind":"k",`+row.given+`}`).text("id")
		if got := s.want(200, "GET", "tasks/"+id, ""); !strings.Contains(got.body, row.want+",") {
			t.Errorf("%s is read as %s, want %s", row.given, got.body, row.want)
		}
	}
	both := s.want(400, "POST", "tasks", `{"kind":"k","payload":1,"payload_base64":"MTI="}`)
	if both.word() != "invalid" || !strings.Contains(both.sentence(), "give one of the two") {
		t.Errorf("both are answered with %s", both.body)
	}
	if bad := s.want(400, "POST", "tasks", `{"kind":"k","payload_base64":"%%"}`); bad.field() != "payload_base64" {
		t.Errorf("wrong base64 is answered with %s", bad.body)
	}
}

func TestManyTasksAreEnqueuedAllOrNone(t *testing.T) {
	s := newStage(t, Config{})
	a := s.want(200, "POST", "tasks/batch", `{"tasks":[{"kind":"a","idempotency_key":"x"},{"kind":"b","idempotency_key":"x"}]}`)
	list := a.json["tasks"].([]any)
	if first := list[0].(map[string]any); first["new"] != true || len(list) != 2 {
		t.Errorf("the answer is %s", a.body)
	}
	if second := list[1].(map[string]any)["refusal"].(map[string]any); second["word"] != "conflict" {
		t.Errorf("a key with other content is answered with %s", a.body)
	}
	before := enqueued(t, s.q)
	for body, field := range map[string]string{
		`{"tasks":[{"kind":"a"},{"kind":""}]}`: "tasks[1].kind",
		`{"tasks":[]}`:                         "tasks",
		`{}`:                                   "tasks",
		`{"tasks":[{"kind":"a"}],"queue":"x"}`: "queue",
		`{"tasks":[{"kind":"a"}],"tasks":[]}`:  "tasks",
		`{"tasks":[` + strings.Repeat(`{"kind":"a"},`, 1000) + `{"kind":"a"}]}`: "tasks",
		`{"tasks":{"kind":"a"}}`: "tasks",
	} {
		if bad := s.want(400, "POST", "tasks/batch", body); bad.field() != field {
			t.Errorf("%.60s is answered with %s, want the field %s", body, bad.body, field)
		}
	}
	if after := enqueued(t, s.q); after != before {
		t.Errorf("%d tasks were enqueued by requests that were refused", after-before)
	}
}

func enqueued(t *testing.T, q *queue.Queue) (n int64) {
	t.Helper()
	stats, err := q.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range stats.Queues {
		n += of.Enqueued
	}
	return n
}

// A client that is gone ends its wait, and a server that stops answers those who wait.
func TestAWaitEndsWithItsClientAndWithTheServer(t *testing.T) {
	s := newStage(t, Config{})
	id := s.want(201, "POST", "tasks", `{"kind":"k"}`).text("id")
	gone := &http.Client{Timeout: 200 * time.Millisecond}
	if _, err := gone.Get(s.base + "tasks/" + id + "/result?wait=60s"); err == nil {
		t.Error("a task that nobody runs has a result")
	}
	await.Until(t, "the wait of a client that is gone ends", func() bool { return len(s.server.waiting) == 0 })
	answers := make(chan answered, 1)
	go func() { answers <- s.do("GET", "tasks/"+id+"/result?wait=60s", "") }()
	await.Until(t, "the request waits", func() bool { return len(s.server.waiting) == 1 })
	s.server.Drain()
	if a := await.Receive(t, answers, "the answer"); a.status != 202 || a.text("status") != "PENDING" {
		t.Errorf("a wait of a server that stops is answered with %d %s", a.status, a.body)
	}
	s.want(503, "GET", "/readyz", "")
	s.want(200, "GET", "/healthz", "")
}
