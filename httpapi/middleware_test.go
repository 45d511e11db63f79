package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// closedWriter is the ResponseWriter of a middleware that has no Unwrap. openWriter has it.
type (
	closedWriter struct{ http.ResponseWriter }
	openWriter   struct{ closedWriter }
)

func (w openWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A stream that a middleware would keep back is refused with what to do. Everything else passes the middleware.
func TestAMiddlewareThatKeepsStreamsBackIsNamed(t *testing.T) {
	s := eventful(t)
	wrap := func(by func(http.ResponseWriter) http.ResponseWriter) {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.server.ServeHTTP(by(w), r) }))
		t.Cleanup(func() { s.server.Drain(); web.Close() })
		s.web, s.base = web, web.URL+"/api/v1/"+s.q.Namespace()+"/"
	}
	wrap(func(w http.ResponseWriter) http.ResponseWriter { return openWriter{closedWriter{w}} })
	next, stop := s.open("after=now", "")
	defer stop()
	s.enqueue("k", "mail")
	if e := next(); e.event != "task_enqueued" {
		t.Errorf("a stream through a middleware with Unwrap has %+v", e)
	}
	wrap(func(w http.ResponseWriter) http.ResponseWriter { return closedWriter{w} })
	if a := s.want(500, "GET", "events", "", header("Accept", "text/event-stream")); !strings.Contains(a.sentence(), "has no method Unwrap") {
		t.Errorf("a stream through a middleware without Unwrap: %s", a.body)
	}
	if text := s.log.String(); !strings.Contains(text, "HTTP request failed") || !strings.Contains(text, "add Unwrap") {
		t.Errorf("the log is %s", text)
	}
	s.want(200, "GET", "events", "")
	s.want(201, "POST", "tasks", `{"kind":"k"}`)
	if n := len(s.server.waiting); n != 1 {
		t.Errorf("%d requests wait, want the stream that is open", n)
	}
}
