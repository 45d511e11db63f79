package httpapi

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// A thousand fetches, results and reads of events wait at once on few connections, and all end when the server stops.
func TestAThousandRequestsOfAllKindsWait(t *testing.T) {
	redis := redistest.Start(t)
	s := newStageOn(t, redis.Client(t), "shop", Config{MaxWait: time.Hour, Silence: time.Hour})
	s.web.Client().Transport.(*http.Transport).MaxConnsPerHost = 0
	id := s.want(201, "POST", "tasks", `{"kind":"p","role":"promise"}`).text("id")
	cursor := s.want(200, "GET", "events?after=now", "").text("next")
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const n = 1000
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			switch i % 3 {
			case 0:
				s.want(202, "GET", "tasks/"+id+"/result?wait=1h", "")
			case 1:
				s.want(200, "POST", fmt.Sprintf("workers/w%d/fetch?wait=1h", i), `{"seq":1,"queues":["mail"]}`)
			case 2:
				s.want(200, "GET", "events?wait=1h&after="+cursor, "")
			}
		})
	}
	await.Until(t, "all requests wait", func() bool { return len(s.server.waiting) == n && s.idles("mail") == n/3 && s.listeners() == n/3 })
	runtime.GC()
	runtime.ReadMemStats(&during)
	clients := queueClients(t, s)
	perWait := (during.HeapInuse + during.StackInuse - before.HeapInuse - before.StackInuse) / n
	t.Logf("%d requests wait: %d connections to Redis, %d bytes each (with the client of the test)", n, clients, perWait)
	if clients > 60 || perWait > 200<<10 {
		t.Errorf("%d connections, %d bytes for each request", clients, perWait)
	}
	s.server.Drain()
	over := make(chan struct{})
	go func() { all.Wait(); close(over) }()
	await.Receive(t, over, "all requests end")
}

// Each different list of queues needs a connection. So there is a bound: a request with one more list looks every second.
func TestListsOfQueuesAreBounded(t *testing.T) {
	i := &idle{}
	for n := range mostLines {
		if !i.enter(fmt.Sprint("q", n)) {
			t.Fatalf("list %d gets no connection", n)
		}
	}
	if i.enter("one more") {
		t.Error("one more list gets a connection")
	}
	if !i.enter("q0") {
		t.Error("a list that has a connection is refused")
	}
	i.leave("q0")
	i.leave("q0")
	if !i.enter("one more") || strings.Contains(fmt.Sprint(i.lists), "q0:") {
		t.Errorf("a free connection is refused: %v", i.lists)
	}
}
