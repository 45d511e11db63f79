package httpapi

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// everyRoute makes a request to each route at once, and checks each answer.
func (s *stage) everyRoute(what string, check func(r route, a answered) bool) {
	s.t.Helper()
	var all sync.WaitGroup
	for _, r := range table() {
		all.Go(func() {
			path, body := sample(r)
			a := s.do(r.Method, path, body)
			if !check(r, a) {
				s.t.Errorf("%s: %s %s: %d %s", what, r.Method, path, a.status, a.body)
			}
			if strings.Contains(a.body, "127.0.0.1") {
				s.t.Errorf("%s: the answer has an address: %s", what, a.body)
			}
		})
	}
	all.Wait()
}

// Whatever is wrong with Redis, each route says so, and all is well again afterwards. internal/test/timing measures how soon.
func TestEachRouteAnswersWhateverRedisDoes(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--appendonly", "yes")
	s := newStageOn(t, redis.Client(t), "shop", Config{Silence: awaySilence})
	well := func() bool {
		return s.do("POST", "tasks", `{"kind":"k","queue":"mail"}`).status == 201 && s.do("GET", "/readyz", "").status == 200
	}
	if !well() {
		t.Fatal("the server does not answer at first")
	}
	set := func(args ...any) {
		t.Helper()
		if err := redis.Client(t).Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	away := func(r route, a answered) bool {
		if a.status == 400 && strings.HasSuffix(a.sentence(), "is missing") || a.field() == "seq" {
			return true // the sample is too small for this route: it is refused before a call
		}
		if r.ID == "checkFlow" && a.status == 200 {
			return true // it needs no Redis
		}
		return a.status == 503 && a.word() == "unavailable" || r.Method != "GET" && a.status == 504 && a.word() == "unknown"
	}
	set("REPLICAOF", "127.0.0.1", "1")
	s.everyRoute("a replica without a master", func(r route, a answered) bool {
		return a.status == 404 || r.Method == "GET" && a.status == 200 || away(r, a)
	})
	if a := s.do("POST", "tasks", `{"kind":"k"}`); a.status/100 != 5 {
		t.Errorf("a task is enqueued on a replica: %d %s", a.status, a.body)
	}
	set("CONFIG", "SET", "replica-serve-stale-data", "no")
	s.everyRoute("a replica that serves nothing", away)
	if a := s.do("GET", "/readyz", ""); a.status != 503 {
		t.Errorf("/readyz on a replica that serves nothing: %d %s", a.status, a.body)
	}
	set("REPLICAOF", "NO", "ONE")
	await.Until(t, "all is well after the replica", well)

	set("CONFIG", "SET", "maxmemory", "1")
	if a := s.do("POST", "tasks", `{"kind":"k"}`); a.status != 503 || a.word() != "full" {
		t.Errorf("a full Redis: %d %s", a.status, a.body)
	}
	s.everyRoute("a full Redis", func(_ route, a answered) bool { return a.status < 500 || a.status == 503 && a.word() == "full" })
	set("CONFIG", "SET", "maxmemory", "0")
	await.Until(t, "all is well after the full Redis", well)

	redis.Kill()
	s.everyRoute("no Redis", away)
	if a := s.do("GET", "/healthz", ""); a.status != 503 {
		t.Errorf("/healthz without Redis: %d %s", a.status, a.body)
	}
	redis.Restart(t)
	await.Until(t, "all is well after the restart", well)
}

// Redis was stopped. A task that certainly did not reach it is refused with 503, which says that nothing was changed, and not with 504.
func TestATaskThatDidNotReachRedisIsNotUnknown(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, "--appendonly", "yes")
	s := newStageOn(t, redis.Client(t), "shop", Config{Silence: awaySilence})
	s.want(201, "POST", "tasks", `{"kind":"k"}`)
	redis.Kill()
	for range 3 {
		var all sync.WaitGroup
		for i := range 12 {
			path, body := "tasks", `{"kind":"k"}`
			if i%3 == 0 {
				path, body = "tasks/batch", `{"tasks":[{"kind":"k"}]}`
			}
			all.Go(func() {
				a := s.do("POST", path, body)
				for range 3 {
					if a.status == 504 { // a try that a stopped machine ends may have been sent
						a = s.do("POST", path, body)
					}
				}
				if a.status != 503 || a.word() != "unavailable" || !strings.Contains(a.sentence(), "nothing was changed") {
					t.Errorf("an enqueue without Redis: %d %s", a.status, a.body)
				}
			})
		}
		all.Wait()
	}
	redis.Restart(t)
	await.Until(t, "requests are answered again", func() bool { return s.do("GET", "queues", "").status == 200 })
	s.want(201, "POST", "tasks", `{"kind":"k"}`)
	if n := enqueued(t, s.q); n != 2 {
		t.Errorf("%d tasks were stored, want 2", n)
	}
}

// Redis hangs. A task that is refused with 503 is never stored, also when Redis reads what it has received. Of tasks that may be stored, the
// answer is 504.
func TestATaskThatMayHaveReachedRedisIsUnknown(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	s := newStageOn(t, redis.Client(t), "shop", Config{Silence: awaySilence})
	unknown, denied := 0, []string{}
	for round := range 3 {
		s.want(201, "POST", "tasks", `{"kind":"k"}`) // there is a connection
		redis.Pause()
		t.Cleanup(redis.Resume)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 12 {
			id := fmt.Sprint("0-T", round, "X", i)
			path, body := "tasks", `{"kind":"k","id":"`+id+`"}`
			if i%4 == 0 {
				path, body = "tasks/batch", `{"tasks":[`+body+`]}`
			}
			all.Go(func() {
				a := s.do("POST", path, body)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case a.status == 504 && a.word() == "unknown":
					unknown++
				case a.status == 503 && a.word() == "unavailable":
					denied = append(denied, id)
				default:
					t.Errorf("POST %s while Redis hangs: %d %s", path, a.status, a.body)
				}
			})
		}
		all.Wait()
		redis.Resume()
		await.Until(t, "requests are answered again", func() bool { return s.do("GET", "queues", "").status == 200 })
	}
	t.Logf("%d tasks are unknown, and %d denied", unknown, len(denied))
	if unknown < 3 {
		t.Errorf("%d requests are answered with 504", unknown)
	}
	for _, id := range denied {
		s.want(404, "GET", "tasks/"+id, "")
	}
}
