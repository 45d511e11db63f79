package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// dial connects to the server with a small buffer for what it sends.
func (s *stage) dial() *net.TCPConn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(await.Patience))
	tcp := conn.(*net.TCPConn)
	tcp.SetReadBuffer(4096)
	return tcp
}

// A client that never ends its header or its body has no connection soon.
func TestSlowClientsAreDisconnected(t *testing.T) {
	s := newStage(t, Config{HeaderTime: 200 * time.Millisecond, BodyTime: 200 * time.Millisecond})
	head := "POST " + strings.TrimPrefix(s.base, s.web.URL) + "tasks%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	var all sync.WaitGroup
	for what, text := range map[string]string{
		"nothing":                                "",
		"half a header":                          fmt.Sprintf(head, "") + "X: ",
		"a header without its end":               fmt.Sprintf(head, ""),
		"half a body":                            fmt.Sprintf(head, "") + "Content-Length: 20\r\n\r\n{\"kind\"",
		"half a body in chunks":                  fmt.Sprintf(head, "") + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"kin",
		"half a body that the request must lack": fmt.Sprintf(head, "/0-A/explain") + "Content-Length: 20\r\n\r\n{",
		"half a body of a request for nothing":   fmt.Sprintf(head, "/no/such/route") + "Content-Length: 20\r\n\r\n{",
	} {
		all.Go(func() {
			conn := s.dial()
			io.WriteString(conn, text)
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("who sends %s is not disconnected", what)
			}
		})
	}
	all.Wait()
	if n := enqueued(t, s.q); n != 0 {
		t.Errorf("%d tasks were enqueued", n)
	}
}

// A slow client that sends a byte from time to time has no more time than another one.
func TestAHeaderThatDripsIsBounded(t *testing.T) {
	s := newStage(t, Config{HeaderTime: 200 * time.Millisecond})
	conn := s.dial()
	for {
		_, err := io.WriteString(conn, "G")
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection is still there")
		}
		if err != nil {
			break
		}
		time.Sleep(10 * time.Millisecond) // sleeps: a slow client
	}
}

// A body that is shorter than its Content-Length enqueues nothing. What comes after the length is another request.
func TestALengthThatIsNotTrueChangesNothing(t *testing.T) {
	s := newStage(t, Config{HeaderTime: 200 * time.Millisecond})
	body := `{"kind":"k"}`
	head := "POST " + strings.TrimPrefix(s.base, s.web.URL) + "tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	conn := s.dial()
	fmt.Fprintf(conn, head+body, len(body)+10)
	conn.CloseWrite()
	if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != 400 {
		t.Errorf("a short body is answered with %v, %v", answer, err)
	}
	conn = s.dial()
	fmt.Fprintf(conn, head+body, len(body)-1)
	answers := bufio.NewReader(conn)
	if answer, err := http.ReadResponse(answers, nil); err != nil || answer.StatusCode != 400 {
		t.Errorf("a body that the length cuts is answered with %v, %v", answer, err)
	}
	if n := enqueued(t, s.q); n != 0 {
		t.Errorf("%d tasks were enqueued", n)
	}
	conn = s.dial()
	fmt.Fprintf(conn, head+body+body, len(body))
	answers = bufio.NewReader(conn)
	for _, want := range []int{201, 400} {
		answer, err := http.ReadResponse(answers, nil)
		if err != nil || answer.StatusCode != want {
			t.Fatalf("a long body is answered with %v, %v, want %d", answer, err, want)
		}
		io.Copy(io.Discard, answer.Body)
	}
	if n := enqueued(t, s.q); n != 1 {
		t.Errorf("%d tasks were enqueued, want 1", n)
	}
}

// A stream has a comment from time to time while there are no events, so that nobody on the way takes it for dead.
func TestAStreamWithoutEventsHasComments(t *testing.T) {
	s := newStage(t, Config{})
	s.server.commentAfter = 20 * time.Millisecond
	conn := s.dial()
	fmt.Fprintf(conn, "GET %sevents?after=now HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", strings.TrimPrefix(s.base, s.web.URL))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(answer.Body)
	for comments := 0; comments < 3; {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %d comments: %v", comments, lines.Err())
		}
		if lines.Text() == ": no events" {
			comments++
		}
	}
	s.server.Drain()
	for lines.Scan() && lines.Text() != "event: end" {
	}
	if lines.Text() != "event: end" {
		t.Error("the stream has no last event")
	}
}

// A client that does not read its stream is disconnected, and the server does not keep the events for it. Another client gets all.
func TestAStreamThatIsNotReadEnds(t *testing.T) {
	for patience := 300 * time.Millisecond; patience < time.Minute; patience *= 4 { // on a busy machine the reader may be slow too
		if unread(t, patience) {
			return
		}
	}
	t.Error("the reader was disconnected each time")
}

// unread is a round of TestAStreamThatIsNotReadEnds. It returns false if the client that reads was slower than patience.
func unread(t *testing.T, patience time.Duration) bool {
	s := eventful(t)
	s.server.writeTimeout = patience
	next, stop := s.open("after=now", "")
	defer stop()
	await.Until(t, "the reader listens", func() bool { return s.listeners() == 1 })
	conn := s.dial()
	fmt.Fprintf(conn, "GET %sevents?after=now HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", strings.TrimPrefix(s.base, s.web.URL))
	await.Until(t, "both listen", func() bool { return s.listeners() == 2 && len(s.server.waiting) == 2 })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tasks := make([]queue.Task, 500)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: strings.Repeat("k", 100), Queue: strings.Repeat("q", 100)}
	}
	sent, read := 0, 0
	for start := time.Now(); len(s.server.waiting) == 2; {
		// real time: only a hang exceeds this
		if time.Since(start) > await.Patience {
			t.Fatalf("the client is connected after %d events that it did not read", sent)
		}
		if _, err := s.q.EnqueueAll(t.Context(), tasks); err != nil {
			t.Fatal(err)
		}
		for sent += len(tasks); read < sent; read++ {
			if e := next(); e.data == "" {
				return false
			} else if e.event != "task_enqueued" {
				t.Fatalf("event %d of who reads is %+v", read, e)
			}
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("%d events were sent until the client was disconnected; the memory has grown by %d KiB", sent, grown>>10)
	if grown > 64<<20 {
		t.Errorf("the memory has grown by %d bytes", grown)
	}
	await.Until(t, "the slow client listens no more", func() bool { return s.listeners() == 1 })
	await.Until(t, "the connection is closed", func() bool { _, err := io.WriteString(conn, "G"); return err != nil })
	return true
}

// A worker whose client vanishes while Redis makes its claims has them: a repeat gets them, or another worker after the lease.
func TestClaimsOfAClientThatVanishesAreNotLost(t *testing.T) {
	for _, after := range []string{"a repeat", "the lease"} {
		s := newStage(t, Config{Silence: time.Hour})
		claimed, closed := make(chan bool), make(chan bool)
		var once sync.Once
		id := s.enqueue("k", "mail")
		s.q.Client().AddHook(queuetest.Around{Name: "fcall", After: func(error) {
			once.Do(func() { claimed <- true; <-closed })
		}})
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, "POST", s.base+"workers/gone/fetch", strings.NewReader(`{"seq":1,"queues":["mail"],"lease_ms":1000}`))
		r.Header.Set("Content-Type", "application/json")
		failed := make(chan error, 1)
		go func() { _, err := s.send(r); failed <- err }()
		await.Receive(t, claimed, "Redis makes the claim")
		leave()
		if err := await.Receive(t, failed, "the client is gone"); err == nil {
			t.Fatal("the client has an answer")
		}
		close(closed)
		if after == "a repeat" {
			if got := (&hand{s: s, name: "gone"}).fetch(`,"queues":["mail"]`, ""); len(got) != 1 || got[0].ID != id || got[0].Epoch != 1 {
				t.Errorf("a repeat gets %+v, want %s", got, id)
			}
			continue
		}
		if got := (&hand{s: s, name: "other"}).fetch(`,"queues":["mail"]`, ""); len(got) != 0 {
			t.Errorf("another worker gets %+v before the lease has ended", got)
		}
		s.sweep()
		if c := (&hand{s: s, name: "heir"}).take("mail"); c.ID != id || c.Epoch != 2 {
			t.Errorf("the heir gets %+v, want %s with the epoch 2", c, id)
		}
	}
}

// A thousand clients vanish while they wait for results, tasks and events. Their places, goroutines and connections to Redis are free
// again, and a task that comes later is not given to one of them.
func TestAThousandClientsVanish(t *testing.T) {
	s := eventful(t)
	id := s.enqueue("slow", "other")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	before := runtime.NumGoroutine()
	ctx, vanish := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 1000 {
		method, path, body := "GET", "tasks/"+id+"/result?wait=60s", ""
		switch i % 3 {
		case 1:
			method, path, body = "POST", fmt.Sprintf("workers/w%d/fetch?wait=60s", i), `{"seq":1,"queues":["mail"]}`
		case 2:
			path = "events?after=now&wait=60s"
		}
		all.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			if answer, err := client.Do(r); err == nil {
				answer.Body.Close()
				t.Errorf("%s %s is answered with %d", method, path, answer.StatusCode)
			}
		})
	}
	await.Until(t, "all requests wait", func() bool { return len(s.server.waiting) == 1000 })
	vanish()
	all.Wait()
	await.Until(t, "nobody waits", func() bool { return len(s.server.waiting) == 0 })
	await.Until(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() < before+100 })
	mail := s.enqueue("k", "mail")
	if got := (&hand{s: s, name: "heir"}).fetch(`,"queues":["mail"]`, ""); len(got) != 1 || got[0].ID != mail {
		t.Errorf("a worker that is there gets %+v, want %s", got, mail)
	}
	queuetest.Sound(t, s.q)
}
