package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/redisproc"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// spawnServe runs curfew serve as a process of its own, on a free port, and returns where it listens.
func spawnServe(t *testing.T, args string) (url string) {
	t.Helper()
	log := &harness.Logs{}
	cmd := itself("serve --listen 127.0.0.1:0 " + args)
	cmd.Stderr = log
	child, err := redisproc.Spawn(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Kill()
		if t.Failed() {
			t.Logf("curfew serve has logged:\n%.5000s", log)
		}
	})
	await.Until(t, "curfew serve listens", func() bool { return strings.Contains(log.String(), "The server runs") })
	return regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(log.String())[1]
}

// asked is a request of each kind, and the statuses that it may have while Redis does not answer.
var asked = []struct {
	method, path, body string
	away               []int
}{
	{"GET", "/api/v1/curfew/tasks/0-A", "", []int{503}},
	{"GET", "/api/v1/curfew/tasks/0-A/result?wait=30s", "", []int{503}},
	{"GET", "/api/v1/curfew/tasks", "", []int{503}},
	{"GET", "/api/v1/curfew/tasks/0-A/explain", "", []int{503}},
	{"GET", "/api/v1/curfew/queues", "", []int{503}},
	{"GET", "/api/v1/curfew/workers", "", []int{503}},
	{"GET", "/api/v1/curfew/events?wait=30s&after=now", "", []int{503}},
	{"GET", "/api/v1/curfew/agents/0-A/checkpoint", "", []int{503}},
	{"POST", "/api/v1/curfew/tasks", `{"kind":"k"}`, []int{503, 504}},
	{"POST", "/api/v1/curfew/tasks/0-A/cancel", "", []int{503, 504}},
	{"POST", "/api/v1/curfew/workers/w/fetch?wait=30s", `{"seq":1,"queues":["none"]}`, []int{503, 504}},
	{"POST", "/api/v1/curfew/agents/0-A/tasks", `{"tasks":[{"task_kind":"c","idempotency_key":"a"}]}`, []int{503, 504}},
}

// saysAway makes a request of each kind at once. Each must say that Redis is away, and be answered before a call gives up: the server has
// noticed that Redis is away, and does not try a call first.
func saysAway(t *testing.T, url, redisURL, why string) {
	t.Helper()
	inTime(t, func(time.Duration) error {
		runs := aCall(t, redisURL)
		var all sync.WaitGroup
		var mu sync.Mutex
		var wrong []error
		answer := func(method, path, body string, check func(status int, text string) bool) {
			all.Go(func() {
				status, text := answerTo(t, method, url+path, body, "")
				ok, soon := check(status, text), runs()
				if mu.Lock(); !ok || !soon {
					wrong = append(wrong, lateIf(ok, fmt.Errorf("%s: %s %s is answered with %d %.300s, before a call is given up: %v", why, method, path, status, text, soon)))
				}
				mu.Unlock()
			})
		}
		for _, r := range asked {
			answer(r.method, r.path, r.body, func(status int, text string) bool {
				var problem struct {
					Error struct{ Word, Sentence string }
				}
				err := json.Unmarshal([]byte(text), &problem)
				want := map[int]string{503: "unavailable", 504: "unknown"}[status]
				return slices.Contains(r.away, status) && err == nil && problem.Error.Word == want && strings.Contains(problem.Error.Sentence, "Redis")
			})
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			answer("GET", path, "", func(status int, text string) bool {
				return status == 503 && strings.Contains(text, `"status":"failing"`)
			})
		}
		answer("GET", "/metrics", "", func(status int, text string) bool { return status == 200 })
		all.Wait()
		for _, err := range wrong {
			if !errors.As(err, new(lateError)) {
				return err
			}
		}
		return errors.Join(wrong...)
	})
	await.Until(t, "a scrape says that Redis is away", func() bool { // scrapes within a short time share one read
		status, text := answerTo(t, "GET", url+"/metrics", "", "")
		return status == 200 && strings.Contains(text, "\n"+`curfew_up{namespace="curfew"} 0`+"\n")
	})
}

// isWell reports whether all kinds of requests are answered as they must be.
func isWell(t *testing.T, url string) bool {
	for _, r := range asked {
		path := strings.ReplaceAll(r.path, "wait=30s", "wait=1ms")
		if status, _ := answerTo(t, r.method, url+path, r.body, ""); status >= 500 {
			return false
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := answerTo(t, "GET", url+path, "", ""); status != 200 {
			return false
		}
	}
	_, text := answerTo(t, "GET", url+"/metrics", "", "")
	return strings.Contains(text, "\n"+`curfew_up{namespace="curfew"} 1`+"\n")
}

// Redis hangs, is killed, and loads its data. Each time all requests say so soon, and all is well again by itself afterwards.
func TestServeSaysThatRedisIsAwayAndComesBack(t *testing.T) {
	t.Parallel()
	// Redis loads a key in 20 ms, and replies once in that time, until the test ends that.
	server := redistest.Start(t, "--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024")
	rdb, at := server.Client(t), "redis://"+server.Addr
	queuetest.Enqueue(t, queuetest.Open(t, rdb, queue.Config{}), queue.Task{Kind: "k", ID: "0-A", Queue: "mail"})
	url := spawnServe(t, "--redis "+at)
	if !isWell(t, url) {
		t.Fatal("the server does not answer at first")
	}
	well := func() bool { return isWell(t, url) }

	server.Pause()
	t.Cleanup(server.Resume)
	saysAway(t, url, at, "Redis hangs")
	server.Resume()
	await.Until(t, "all is well after the hang", well)

	value := make([]byte, 2048)
	rand.Read(value)
	pipe := rdb.Pipeline()
	for i := range 9000 { // loaded in three minutes
		pipe.Set(t.Context(), fmt.Sprint("filler:", i), value, 0)
	}
	pipe.Save(t.Context())
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	saysAway(t, url, at, "Redis was killed")
	restarted := make(chan error, 1)
	go func() { restarted <- server.Server.Restart() }()
	await.Until(t, "Redis loads its data", func() bool {
		err := rdb.Ping(t.Context()).Err()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	})
	saysAway(t, url, at, "Redis loads its data")
	if err := rdb.ConfigSet(t.Context(), "key-load-delay", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := await.Receive(t, restarted, "Redis runs again"); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "all is well after the restart", well)
	if status, text := answerTo(t, "GET", url+"/api/v1/curfew/tasks/0-A", "", ""); status != http.StatusOK {
		t.Errorf("the task is answered with %d %s", status, text)
	}
}
