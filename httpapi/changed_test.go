package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/faultproxy"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Redis does not answer the read after a change any more. The answer must not say that nothing was changed.
func TestAChangeThatWasMadeIsNotDenied(t *testing.T) {
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	s := newStageOn(t, stages.Client(t, proxy.Addr), redistest.Namespace(t), Config{})
	s.want(201, "POST", "tasks", `{"kind":"k"}`)
	s.q.Engine().Observe(engine.Observer{Called: func(_ context.Context, script string, _ time.Duration, _ error) {
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
