package httpapi

import (
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A thousand requests wait at once, with few connections to Redis and little memory, and all are answered when their tasks end.
func TestAThousandRequestsWait(t *testing.T) {
	redis := redistest.Start(t)
	s := newStageOn(t, redis.Client(t), "shop", Config{Silence: time.Hour})
	const n = 1000
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "p", Promise: true}
	}
	receipts, err := s.q.EnqueueAll(t.Context(), tasks)
	if err != nil {
		t.Fatal(err)
	}
	s.web.Client().Transport.(*http.Transport).MaxConnsPerHost = 0
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	answers := make(chan time.Time, n)
	for _, r := range receipts {
		go func() {
			if a := s.do("GET", "tasks/"+r.ID+"/result?wait=60s", ""); a.status != 200 {
				t.Errorf("%s: %d %s", r.ID, a.status, a.body)
			}
			answers <- time.Now()
		}()
	}
	await.Until(t, "all requests wait", func() bool { return len(s.server.waiting) == n })
	runtime.GC()
	runtime.ReadMemStats(&during)
	clients := queueClients(t, s)
	perWait := (during.HeapInuse + during.StackInuse - before.HeapInuse - before.StackInuse) / n
	t.Logf("%d requests wait: %d connections to Redis, %d bytes each (with the client of the test)", n, clients, perWait)
	if clients > 60 || perWait > 200<<10 {
		t.Errorf("%d connections, %d bytes for each request", clients, perWait)
	}
	var late []time.Duration
	for _, r := range receipts {
		start := time.Now()
		if _, err := s.q.Resolve(t.Context(), r.ID, []byte("1")); err != nil {
			t.Fatal(err)
		}
		late = append(late, await.Receive(t, answers, "an answer").Sub(start))
	}
	slices.Sort(late)
	t.Logf("from the call that ends the task to the answer: p50 %v, p99 %v", late[n/2], late[n*99/100])
	queuetest.Sound(t, s.q)
}

func queueClients(t *testing.T, s *stage) int {
	t.Helper()
	text, err := s.q.Client().Do(t.Context(), "INFO", "clients").Text()
	if err != nil {
		t.Fatal(err)
	}
	return connected(text)
}

func connected(info string) (n int) {
	const name = "connected_clients:"
	for i := range len(info) - len(name) {
		if info[i:i+len(name)] == name {
			for _, c := range info[i+len(name):] {
				if c < '0' || c > '9' {
					return n
				}
				n = 10*n + int(c-'0')
			}
		}
	}
	return n
}
