package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Redis does not answer the read after a change any more. The answer must not say that nothing was changed.
func TestAChangeThatWasMadeIsNotDenied(t *testing.T) {
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	s := newStageOn(t, harness.Client(t, proxy.Addr), redistest.Namespace(t), Config{})
	s.want(201, "POST", "tasks", `{"kind":"k"}`)
	s.q.Engine().Observe(engine.Observer{Called: func(_ context.Context, _ int, script string, _ time.Duration, _ error) {
		if script == "control" {
			proxy.Say("-LOADING Redis is loading")
		}
	}})
	a := s.do("POST", "queues/default/pause?force=true", "")
	if a.status != 504 || a.word() != "unknown" || !strings.Contains(a.sentence(), "has changed something") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if text := s.log.String(); !strings.Contains(text, "HTTP change unknown") {
		t.Errorf("it is logged as %s", text)
	}
	if a := s.do("GET", "queues/default", ""); a.status != 503 {
		t.Errorf("a read: %d %s", a.status, a.body)
	}
	if a := s.do("POST", "queues/default/pause", ""); a.status != 503 {
		t.Errorf("a change that was not made: %d %s", a.status, a.body)
	}
}

// An empty fetch and a heartbeat change nothing that lasts.
func TestWhatRenewsIsNoChange(t *testing.T) {
	s := newStage(t, Config{})
	s.want(200, "POST", "workers/w/fetch", `{"seq":1}`)
	s.want(200, "POST", "workers/w/heartbeat", `{}`)
	if text := s.log.String(); strings.Contains(text, "HTTP change") {
		t.Errorf("the log is %s", text)
	}
}

func TestHostsAreNamesInAnyCase(t *testing.T) {
	s := newStage(t, Config{Hosts: []string{"Jobs.Example.com", "[::1]"}})
	for host, status := range map[string]int{"jobs.example.com": 201, "JOBS.example.com:7420": 201, "[::1]:7420": 201, "127.0.0.1": 403} {
		if a := s.do("POST", "tasks", `{"kind":"k"}`, func(r *http.Request) { r.Host = host }); a.status != status {
			t.Errorf("%s: %d %s", host, a.status, a.body)
		}
	}
	for _, host := range []string{"jobs.example.com:7420", "http://jobs", "", "a b"} {
		var invalid *refusal.InvalidError
		if _, err := New(Config{Hosts: []string{host}, Public: true, Queues: []*queue.Queue{s.q}}); !errors.As(err, &invalid) || invalid.Field != "hosts" {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// The messages of agents' clients have the agent once more, and no worker.
func TestTheAgentOfAMessageIsThatOfThePath(t *testing.T) {
	s := newStage(t, Config{})
	agent := s.want(201, "POST", "tasks", `{"kind":"agent","timeout":"1h"}`).json["id"].(string)
	s.want(200, "POST", "workers/w/fetch", `{"seq":1}`)
	at := "agents/" + agent + "/"
	s.want(200, "POST", at+"tasks", `{"agent_execution_id":"`+agent+`","queue":"mail","tasks":[{"task_kind":"k","idempotency_key":"a"}]}`)
	child := agent + ".n-a"
	for path, body := range map[string]string{"tasks": `"tasks":[{"task_kind":"k"}]`, "tasks/results": `"task_execution_ids":["` + child + `"]`,
		"tasks/" + child + "/cancel": `"reason":"r"`, "suspend": `"epoch":1,"wait_for_task":"` + child + `"`} {
		if a := s.do("POST", at+path, `{"agent_execution_id":"0-1M83W6QVA5M9QNG9Q7",`+body+`}`); a.status != 400 || a.field() != "agent_execution_id" {
			t.Errorf("%s of another agent: %d %s", path, a.status, a.body)
		}
	}
	s.want(200, "POST", at+"tasks/results", `{"agent_execution_id":"`+agent+`","task_execution_ids":["`+child+`"]}`)
	if a := s.do("POST", at+"suspend", `{"agent_execution_id":"`+agent+`","epoch":2,"wait_for_task":"`+child+`"}`); a.status != 409 {
		t.Errorf("another epoch: %d %s", a.status, a.body)
	}
	message := `{"agent_execution_id":"` + agent + `","epoch":1,"reason":"r","wait_for_tasks":{"task_ids":["` + child + `"]}}`
	for range 2 { // the second time, the agent waits already
		if a := s.want(200, "POST", at+"suspend", message); a.json["status"] != "WAITING" {
			t.Errorf("suspend: %s", a.body)
		}
	}
}

// Two workers use the same name for their calls. The call of the second is no repeat of the first's.
func TestACallBelongsToItsWorker(t *testing.T) {
	s := newStage(t, Config{})
	id := s.enqueue("k", "default")
	s.want(200, "POST", "workers/a/fetch", `{"seq":1}`)
	give := fmt.Sprintf(`{"call":"s1","outcomes":[{"id":%q,"epoch":1,"verb":"release"}]}`, id)
	for range 2 {
		s.want(200, "POST", "workers/a/settle", give)
	}
	s.want(200, "POST", "workers/b/fetch", `{"seq":1}`)
	done := fmt.Sprintf(`{"call":"s1","outcomes":[{"id":%q,"epoch":2,"verb":"complete","result":7}]}`, id)
	for range 2 {
		if a := s.want(200, "POST", "workers/b/settle", done); !strings.Contains(a.body, "COMPLETED") {
			t.Errorf("the result of the second worker: %s", a.body)
		}
	}
	if a := s.want(200, "GET", "tasks/"+id+"/result", ""); a.json["result"] != 7.0 {
		t.Errorf("the result is %s", a.body)
	}
}

// What a known client may not do is logged with its name.
func TestAForbiddenChangeIsLogged(t *testing.T) {
	s := newStage(t, withTokens(t))
	s.want(403, "POST", "tasks", `{"kind":"k"}`, as("a-reader"))
	if text := s.log.String(); !strings.Contains(text, "HTTP change refused") || !strings.Contains(text, "who=reader") {
		t.Errorf("the log is %s", text)
	}
}

// A client that has seen no event yet has a cursor for its next connection.
func TestAStreamBeginsWithItsCursor(t *testing.T) {
	s := eventful(t)
	conn := s.dial()
	fmt.Fprintf(conn, "GET %sevents?after=now HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", strings.TrimPrefix(s.base, s.web.URL))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(answer.Body)
	cursor := ""
	for cursor == "" && lines.Scan() {
		cursor, _ = strings.CutPrefix(lines.Text(), "id: ")
		if !strings.HasPrefix(lines.Text(), "id: ") {
			cursor = ""
		}
	}
	conn.Close()
	id := s.enqueue("k", "default")
	if got := s.want(200, "GET", "events?after="+url.QueryEscape(cursor), "").eventIDs(); len(got) != 1 || got[0] != id {
		t.Errorf("behind the cursor %q are %v, want %s", cursor, got, id)
	}
}

// A file of clients that was deleted is an error, after the time that a replacement may take.
func TestADeletedFileOfClientsIsLogged(t *testing.T) {
	path, log := tokenFile(t, tokens), &harness.Logs{}
	file, err := watchFile(path, slog.New(slog.NewTextHandler(log, nil)), func(string) (int, error) { return 1, nil })
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	look := func() {
		file.mu.Lock()
		file.looked = time.Time{}
		file.mu.Unlock()
		file.get()
	}
	if look(); log.String() != "" {
		t.Errorf("a file that is being replaced: %s", log)
	}
	file.gone = file.gone.Add(-replaced)
	for range 3 {
		look()
	}
	if n := strings.Count(log.String(), "no such file"); n != 1 {
		t.Errorf("a deleted file is logged %d times: %s", n, log)
	}
}

// A worker whose lease has ended is not listed as a live one, although no reaper has removed it.
func TestADeadWorkerIsNotListed(t *testing.T) {
	s := newStage(t, Config{})
	s.enqueue("k", "default")
	s.want(200, "POST", "workers/dies/fetch", `{"seq":1,"lease_ms":3000}`)
	if a := s.want(200, "GET", "workers", ""); !strings.Contains(a.body, `"dies"`) {
		t.Errorf("a live worker is not listed: %s", a.body)
	}
	await.Until(t, "the worker is not listed any more", func() bool { return !strings.Contains(s.do("GET", "workers", "").body, `"dies"`) })
}

// An outage is one line at its beginning and one at its end, however many requests there are.
func TestAnOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--appendonly", "yes")
	s := newStageOn(t, redis.Client(t), "shop", Config{Silence: awaySilence})
	s.want(200, "GET", "queues", "")
	redis.Kill()
	for range 3 {
		s.want(503, "GET", "queues", "")
	}
	redis.Restart(t)
	await.Until(t, "requests are answered", func() bool { return s.do("GET", "queues", "").status == 200 })
	text := s.log.String()
	if strings.Count(text, "Requests cannot be answered") != 1 || strings.Count(text, "Requests are answered again") != 1 {
		t.Errorf("the log is %s", text)
	}
}

// A browser lets pages of an allowed site send changes and read the answers, and no other pages.
func TestPagesOfAllowedSitesCanUseTheAPI(t *testing.T) {
	s := newStage(t, Config{Origins: []string{"https://ops.example.com"}})
	for origin, allowed := range map[string]bool{"https://ops.example.com": true, "https://evil.example.com": false, "https://ops.example.com.evil.com": false} {
		ask := s.do("OPTIONS", "tasks", "", header("Origin", origin), header("Access-Control-Request-Method", "POST"), header("Access-Control-Request-Headers", "content-type"))
		send := s.do("POST", "tasks", `{"kind":"k"}`, header("Origin", origin), header("Sec-Fetch-Site", "cross-site"))
		for _, a := range []answered{ask, send} {
			if got := a.header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || a.header.Get("Vary") != "Origin" {
				t.Errorf("%s: %d, allowed is %q", origin, a.status, got)
			}
		}
		if (ask.status == 204) != allowed || (send.status == 201) != allowed {
			t.Errorf("%s: %d, %d %s", origin, ask.status, send.status, send.body)
		}
	}
	plain := newStage(t, Config{})
	if a := plain.do("GET", "queues", "", header("Origin", "https://ops.example.com")); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("without Origins, pages of other sites may read")
	}
}

// The name of a kind can have a slash. In a path it is encoded.
func TestANameWithASlashIsEncoded(t *testing.T) {
	s := newStage(t, Config{})
	s.want(201, "POST", "tasks", `{"kind":"mail/send"}`)
	s.want(200, "PUT", "kinds/mail%2Fsend", `{"timeout_ms":60000}`)
	if a := s.want(200, "GET", "kinds/mail%2Fsend", ""); a.text("kind") != "mail/send" {
		t.Errorf("the kind is %s", a.body)
	}
	for _, path := range []string{"kinds/mail%2F..%2Fsend", "kinds/%2Fsend", "kinds/mail%2F%2Fsend", "kinds/mail%5Csend", "tasks%2F0-A", "kinds/..%2Ftasks"} {
		if a := s.do("GET", path, ""); a.status != 404 || a.word() != "no_route" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// Requests beyond the rate of a client do not fill the log.
func TestOneOfTooManyChangesIsNotLogged(t *testing.T) {
	s := newStage(t, Config{Rate: 1, Burst: 1})
	var last answered
	await.Until(t, "the rate is used up", func() bool { last = s.do("POST", "tasks", `{"kind":"k"}`); return last.status == 429 })
	if text := s.log.String(); strings.Contains(text, "status=429") {
		t.Errorf("the log is %s", text)
	}
}
