package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A check of a definition waits while two others run, and ends with its client.
func TestFewDefinitionsAreCheckedAtOnce(t *testing.T) {
	s := newStage(t, Config{})
	for range cap(s.server.compiles) {
		s.server.compiles <- struct{}{}
	}
	ctx, leave := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "POST", s.base+"flow-check", strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	ended := make(chan error, 1)
	go func() { _, err := s.send(r); ended <- err }()
	await.Until(t, "the request is read", func() bool { return len(s.server.requests) == 1 })
	if leave(); await.Receive(t, ended, "the request ends") == nil {
		t.Error("a third definition is checked")
	}
	<-s.server.compiles
	if a := s.do("POST", "flow-check", `{}`); a.status != 422 && a.status != 400 {
		t.Errorf("a check with a free place is answered with %d %s", a.status, a.body)
	}
}

// Every route refuses what it cannot read, says which part is wrong, and changes nothing.
func TestEachRouteRefusesBadInput(t *testing.T) {
	s := newStage(t, Config{})
	queuetest.Enqueue(t, s.q, queue.Task{Queue: "mail"})
	before := redistest.Digest(t, s.q.Client(), s.q.Namespace()+":")
	for _, r := range table() {
		path, body := sample(r)
		join := "?"
		if strings.Contains(path, "?") {
			join = "&"
		}
		rows := []struct {
			status             int
			word, method, path string
			body               string
			header             [2]string
		}{
			{400, "invalid", r.Method, path + join + "no_such=1", body, [2]string{}},
			{400, "invalid", r.Method, path + join + "a=%zz", body, [2]string{}},
			{400, "invalid", r.Method, path + join + "a;b", body, [2]string{}},
			{405, "no_method", "PATCH", path, "", [2]string{}},
			{403, "wrong_host", r.Method, path, body, [2]string{"Host", "evil.example"}},
			{404, "no_route", r.Method, strings.Replace(path, "/", "%2F", 1) + "%2F..", body, [2]string{}},
			{404, "no_namespace", r.Method, "/api/v1/other/" + path, body, [2]string{}},
		}
		if r.Method != "GET" {
			rows = append(rows, struct {
				status             int
				word, method, path string
				body               string
				header             [2]string
			}{403, "cross_site", r.Method, path, body, [2]string{"Sec-Fetch-Site", "cross-site"}})
		}
		for _, p := range r.Query {
			rows[0].path = path + join + strings.Replace(p.Name, p.Name[:2], p.Name[1:2]+p.Name[:1], 1) + "=1"
			wrong := map[kind][]string{number: {"x", "-1", "1e9", "99999999999999999999", ""}, flag: {"yes", "1"}, span: {"5", "soon", "-1s"}, instant: {"yesterday", "-1h"}, list: {""}, text: {"", "%ff"}}[p.Type]
			for _, value := range wrong {
				a := s.do(r.Method, path+join+p.Name+"="+value, body)
				if a.status != 400 || a.field() != p.Name && !strings.Contains(path, p.Name+"=") {
					t.Errorf("%s %s with %s=%s: %d %s", r.Method, path, p.Name, value, a.status, a.body)
				}
			}
			if p.Type != list {
				if a := s.do(r.Method, path+join+p.Name+"=1&"+p.Name+"=2", body); a.status != 400 || !strings.Contains(a.sentence(), "more than once") {
					t.Errorf("%s twice: %d %s", p.Name, a.status, a.body)
				}
			}
		}
		for _, row := range rows {
			a := s.do(row.method, row.path, row.body, func(q *http.Request) {
				if row.header[0] == "Host" {
					q.Host = row.header[1]
				} else if row.header[0] != "" {
					q.Header.Set(row.header[0], row.header[1])
				}
			})
			if a.status != row.status || a.word() != row.word || a.sentence() == "" {
				t.Errorf("%s %s %v: %d %s, want %d %s", row.method, row.path, row.header, a.status, a.body, row.status, row.word)
			}
		}
		s.badBodies(r, path, body)
	}
	if after := redistest.Digest(t, s.q.Client(), s.q.Namespace()+":"); after != before {
		t.Error("a request that was refused has changed something")
	}
}

func (s *stage) badBodies(r route, path, body string) {
	t := s.t
	if r.Body == nil {
		if a := s.do(r.Method, path, "{}"); a.status != 400 || a.field() != "body" {
			t.Errorf("%s %s with a body: %d %s", r.Method, path, a.status, a.body)
		}
		return
	}
	for _, header := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "", "application/jsonx"} {
		if a := s.do(r.Method, path, body, func(q *http.Request) { q.Header.Set("Content-Type", header) }); a.status != 415 {
			t.Errorf("%s %s as %q: %d %s", r.Method, path, header, a.status, a.body)
		}
	}
	if a := s.do(r.Method, path, body, func(q *http.Request) { q.Header.Set("Content-Encoding", "gzip") }); a.status != 415 {
		t.Errorf("%s %s compressed: %d %s", r.Method, path, a.status, a.body)
	}
	for _, bad := range []string{"[", "nul", "[]", "null", `"x"`, "{} {}", "\ufeff{}", "{\"reason\":\"\xff\"}", `{"reason":NaN}`, `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
		`{"resaon":"x"}`, `{"kind":"a","kind":"a"}`, `{"reason":"a","reason":"b"}`, `{"":1}`, `{"kind":1,"reason":[],"error":{},"tasks":1,"max_running":"x","timeout_ms":"x","result_base64":1,"payload_base64":1}`} {
		if a := s.do(r.Method, path, bad); a.status != 400 || a.field() == "" {
			t.Errorf("%s %s %.60q: %d %s", r.Method, path, bad, a.status, a.body)
		}
	}
}

// raw sends bytes, and returns the answer.
func (s *stage) raw(text string) (*http.Response, error) {
	conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(await.Patience))
	io.WriteString(conn, text)
	return http.ReadResponse(bufio.NewReader(conn), nil)
}

// Bodies that are too large, lie about their length or never end, and headers that are too large.
func TestBodiesAreBounded(t *testing.T) {
	s := newStage(t, Config{MaxBody: 2000, BodyTime: 300 * time.Millisecond})
	large := `{"kind":"k","payload":"` + strings.Repeat("x", 3000) + `"}`
	if a := s.want(413, "POST", "tasks", large); a.word() != "too_large" {
		t.Errorf("a large body: %s", a.body)
	}
	s.want(413, "POST", "tasks", large, func(r *http.Request) { r.ContentLength = -1; r.Body = io.NopCloser(strings.NewReader(large)) })
	head := fmt.Sprintf("POST /api/v1/%s/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", s.q.Namespace())
	for request, status := range map[string]int{
		head + "Content-Length: 100\r\n\r\n{\"kind\"":                408, // the rest never comes
		head + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n":            400,
		head + "Content-Length: 5000\r\n\r\n":                        413,
		head + "Content-Length: -1\r\n\r\n":                          400,
		head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}":    400,
		head + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n":      431,
		strings.Replace(head, "/tasks", "//tasks", 1) + "\r\n":       404,
		strings.Replace(head, "/tasks", "/a/../tasks", 1) + "\r\n":   404,
		strings.Replace(head, "/tasks", "/tasks%00", 1) + "\r\n":     404,
		strings.Replace(head, "Host: localhost\r\n", "", 1) + "\r\n": 400,
	} {
		response, err := s.raw(request)
		if err != nil || response.StatusCode != status {
			t.Errorf("%.160q: %v %v, want %d", request, response, err, status)
		}
	}
	if n := enqueued(t, s.q); n != 0 {
		t.Errorf("%d tasks were enqueued", n)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	s := newStage(t, Config{MaxWaiting: 2, Rate: 1, Burst: 5})
	id := queuetest.Enqueue(t, s.q, queue.Task{}).ID
	answers := make(chan answered, 2)
	for range 2 {
		go func() { answers <- s.do("GET", "tasks/"+id+"/result?wait=60s", "") }()
	}
	await.Until(t, "two requests wait", func() bool { return len(s.server.waiting) == 2 })
	if a := s.want(503, "GET", "tasks/"+id+"/result?wait=60s", ""); a.word() != "busy" || a.header.Get("Retry-After") == "" {
		t.Errorf("a third one: %s", a.body)
	}
	s.want(400, "GET", "tasks/"+id+"/result?wait=2m", "")
	var last answered
	await.Until(t, "the rate is used up", func() bool { last = s.do("GET", "queues", ""); return last.status != 200 })
	if last.status != 429 || last.word() != "too_many" || last.header.Get("Retry-After") == "" {
		t.Errorf("more than the rate: %d %s", last.status, last.body)
	}
	s.server.Drain()
	for range 2 {
		await.Receive(t, answers, "an answer")
	}
}

// While Redis hangs, requests are answered within a second, and afterwards all is well again.
func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := newStageOn(t, redis.Client(t), "shop", Config{Silence: awaySilence})
	id := s.want(201, "POST", "tasks", `{"kind":"k"}`).text("id")
	waits := make(chan answered, 1)
	go func() { waits <- s.do("GET", "tasks/"+id+"/result?wait=60s", "") }()
	await.Until(t, "the request waits", func() bool { return len(s.server.waiting) == 1 })
	redis.Pause()
	t.Cleanup(redis.Resume)
	if a := await.Receive(t, waits, "the answer"); a.status != 503 || a.word() != "unavailable" {
		t.Errorf("a request that waits: %d %s", a.status, a.body)
	}
	for _, row := range []struct {
		method, path, body string
		status             int
	}{{"GET", "tasks/" + id, "", 503}, {"GET", "queues", "", 503}, {"GET", "tasks", "", 503}, {"POST", "tasks", `{"kind":"k"}`, 504}, {"POST", "tasks/" + id + "/cancel", "", 504}, {"GET", "/healthz", "", 503}, {"GET", "/readyz", "", 503}} {
		a := s.do(row.method, row.path, row.body)
		if a.status != row.status || row.path[0] != '/' && a.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %s, want %d", row.method, row.path, a.status, a.body, row.status)
		}
	}
	redis.Resume()
	await.Until(t, "requests are answered again", func() bool {
		return s.do("GET", "tasks/"+id, "").status == 200 && s.do("GET", "/healthz", "").status == 200
	})
}

func FuzzBody(f *testing.F) {
	for _, text := range []string{`{"reason":"x"}`, `{}`, `{"reason":1}`, `{"reason":"a","reason":"b"}`, "\xff", `{"a":[{}]}`, `{"\u0072eason":"x"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var body reasonBody
		fault := readObject([]byte(text), &body)
		var plain map[string]any
		if err := json.Unmarshal([]byte(text), &plain); err != nil && fault == nil {
			t.Fatalf("%q is read as %v, and json says %v", text, body, err)
		}
		if fault == nil {
			if want, is := plain["reason"].(string); is && want != body.Reason {
				t.Fatalf("%q is read as %q", text, body.Reason)
			}
		} else if fault.status != 400 || fault.Problem.Error.Sentence == "" || errors.Is(fault, io.EOF) {
			t.Fatalf("%q: %v", text, fault)
		}
	})
}
