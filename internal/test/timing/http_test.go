package timing_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/httpapi"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/queue"
)

// While Redis is silent, requests are answered with 503 within a second: one that waits, and one that begins then.
func TestRequestsAreAnsweredWhileRedisIsSilent(t *testing.T) {
	server := redistest.Start(t) // it is paused, so the pulse uses another one
	timing.Keep(t, redistest.Shared(t).Addr, time.Second, func(planted bool) time.Duration {
		s := harness.New(t, server.Addr, queue.Config{})
		api, err := httpapi.New(httpapi.Config{Queues: []*queue.Queue{s.Q}, Public: true, Silence: map[bool]time.Duration{true: 5 * time.Second}[planted]})
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(api)
		defer web.Close()
		id := s.Enqueue(queue.Task{Kind: "k"})[0]
		get := func(path string, want int) {
			answer, err := http.Get(web.URL + "/api/v1/" + s.Q.Namespace() + "/" + path)
			if err != nil {
				t.Error(err)
				return
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s is answered with %d, want %d", path, answer.StatusCode, want)
			}
		}
		get(fmt.Sprint("tasks/", id, "/result?wait=1ms"), 202)
		over := make(chan struct{}, 2)
		go func() { get(fmt.Sprint("tasks/", id, "/result?wait=60s"), 503); over <- struct{}{} }()
		harness.Pass(100 * time.Millisecond) // the request waits
		server.Pause()
		defer server.Resume()
		go func() { get("queues", 503); over <- struct{}{} }()
		start := time.Now()
		<-over
		<-over
		return time.Since(start)
	})
}
