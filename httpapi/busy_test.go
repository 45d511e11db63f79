package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
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

// heldBack is a redis.Hook that holds back each enqueue of a task whose kind is held, until it receives from the channel.
type heldBack chan bool

// DialHook implements redis.Hook.
func (heldBack) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (heldBack) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (h heldBack) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.Contains(fmt.Sprint(cmd.Args()...), "held") {
			<-h
		}
		return next(context.WithoutCancel(ctx), cmd)
	}
}

// While as many requests are served as there may be, another one is refused and changes nothing. Then there is a place again.
func TestARequestTooManyIsRefusedUntilOneHasEnded(t *testing.T) {
	s := newStage(t, Config{MaxRequests: 2, Silence: time.Hour})
	id := queuetest.Enqueue(t, s.q, queue.Task{}).ID
	goOn := make(heldBack)
	s.q.Client().AddHook(goOn)
	full := func() bool { return len(s.server.requests) == 2 }
	for _, end := range []string{"is answered", "goes away"} {
		before := enqueued(t, s.q)
		first, firstAnswer := s.slow("tasks")
		second, secondAnswer := s.slow("tasks")
		fmt.Fprint(first, `{"kind":"held"}`)
		fmt.Fprint(second, `{"kind":"held"}`)
		s.want(200, "GET", "queues", "") // bodies that have not ended have no place
		first.Close()
		second.Close()
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
		if end == "goes away" {
			s.web.CloseClientConnections()
			await.Until(t, "their places are free", func() bool { return len(s.server.requests) == 0 })
			goOn <- true // the call of the first; the second has made none
		} else {
			goOn <- true
			await.Until(t, "there is a place", func() bool { return len(s.server.requests) <= 1 })
			s.want(200, "GET", "queues", "")
			await.Until(t, "all are served", func() bool {
				select {
				case goOn <- true: // the second task can have been in the call of the first
				default:
				}
				return len(s.server.requests) == 0
			})
		}
		for _, answer := range []chan answered{firstAnswer, secondAnswer} {
			if a := await.Receive(t, answer, "an answer"); end == "is answered" && a.status != 201 {
				t.Errorf("a request that was served is answered with %d %s", a.status, a.body)
			}
		}
		await.Until(t, "all places are free", func() bool { return len(s.server.requests) == 0 })
		s.want(201, "POST", "tasks", `{"kind":"k"}`)
	}
	if a := s.want(200, "GET", "queues/default", ""); a.json["paused"] != 0.0 {
		t.Errorf("a refused pause counts: %s", a.body)
	}
}
