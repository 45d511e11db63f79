package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// slow sends a request whose body does not end before it is closed.
func (s *stage) slow(path string) (body *io.PipeWriter, answer chan answered) {
	s.t.Helper()
	from, body := io.Pipe()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.base+path, from)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer = make(chan answered, 1)
	go func() {
		a, _ := s.send(r) // none, if the client goes away
		answer <- a
	}()
	return body, answer
}

// While as many requests are served as there may be, another one is refused and changes nothing. Then there is a place again.
func TestARequestTooManyIsRefusedUntilOneHasEnded(t *testing.T) {
	s := newStage(t, Config{MaxRequests: 2})
	id := queuetest.Enqueue(t, s.q, queue.Task{}).ID
	full := func() bool { return len(s.server.requests) == 2 }
	for _, end := range []string{"is answered", "goes away"} {
		before := enqueued(t, s.q)
		first, firstAnswer := s.slow("tasks")
		second, secondAnswer := s.slow("tasks")
		await.Until(t, "two requests are served", full)
		for _, r := range []struct{ method, path, body string }{{"GET", "queues", ""}, {"POST", "tasks", `{"kind":"k"}`}, {"DELETE", "tasks/" + id, ""}, {"POST", "queues/default/pause", ""}} {
			if a := s.want(503, r.method, r.path, r.body); a.word() != "busy" || a.header.Get("Retry-After") != "1" {
				t.Errorf("%s %s: %s, Retry-After %q", r.method, r.path, a.body, a.header.Get("Retry-After"))
			}
		}
		s.want(200, "GET", "/healthz", "")                     // a server that is busy is not ill
		s.want(202, "GET", "tasks/"+id+"/result?wait=1ms", "") // requests that wait have places of their own
		if n := enqueued(t, s.q); n != before {
			t.Errorf("%d tasks were enqueued by requests that were refused", n-before)
		}
		fmt.Fprint(first, `{"kind":"k"}`)
		first.Close()
		if a := await.Receive(t, firstAnswer, "the first answer"); a.status != 201 {
			t.Errorf("the first request is answered with %d %s", a.status, a.body)
		}
		await.Until(t, "there is a place", func() bool { return len(s.server.requests) == 1 })
		s.want(200, "GET", "queues", "")
		if end == "goes away" {
			second.CloseWithError(io.ErrUnexpectedEOF)
			await.Receive(t, secondAnswer, "the second client")
		} else {
			fmt.Fprint(second, `{"kind":"k"}`)
			second.Close()
			if a := await.Receive(t, secondAnswer, "the second answer"); a.status != 201 {
				t.Errorf("the second request is answered with %d %s", a.status, a.body)
			}
		}
		await.Until(t, "all places are free", func() bool { return len(s.server.requests) == 0 })
		s.want(201, "POST", "tasks", `{"kind":"k"}`)
	}
	if a := s.want(200, "GET", "queues/default", ""); a.json["paused"] != 0.0 {
		t.Errorf("a refused pause counts: %s", a.body)
	}
}
