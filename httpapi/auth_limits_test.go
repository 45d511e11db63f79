package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/test/await"
)

// half sends the beginning of a request whose body has the length size, as a client.
func (s *stage) half(client, body string, size int) *net.TCPConn {
	s.t.Helper()
	conn := s.dial()
	fmt.Fprintf(conn, "POST %stasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-of-%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		strings.TrimPrefix(s.base, s.web.URL), client, size, body)
	return conn
}

func (s *stage) bytesTaken() int64 {
	s.server.memory.mu.Lock()
	defer s.server.memory.mu.Unlock()
	return s.server.memory.taken
}

// A client sends more bodies than requests are served at once, and all of them slowly. Other clients, and its own other requests, are
// served as ever. The bodies that arrive whole in the end are served too.
func TestSlowBodiesKeepNobodyWaiting(t *testing.T) {
	s := newStage(t, withTokens(t))
	const slow = 300
	begin, end := `{"kind":"k","id":"0-S`, `"}`
	var conns []*net.TCPConn
	for i := range slow {
		conns = append(conns, s.half("a-producer", fmt.Sprint(begin, i+1000), len(begin)+4+len(end)))
	}
	await.Until(t, "all bodies have begun", func() bool { return s.bytesTaken() == slow*firstPart })
	for range 20 {
		for _, r := range []struct{ client, method, path, body string }{
			{"a-reader", "GET", "queues", ""}, {"a-worker", "POST", "workers/w/fetch", `{"seq":1,"n":0}`}, {"an-operator", "POST", "tasks", `{"kind":"k"}`},
			{"a-producer", "POST", "tasks", `{"kind":"k"}`},
		} {
			if a := s.do(r.method, r.path, r.body, as(r.client)); a.status/100 != 2 {
				t.Fatalf("%s %s of %s: %d %s", r.method, r.path, r.client, a.status, a.body)
			}
		}
	}
	for i, conn := range conns {
		io.WriteString(conn, end)
		if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || answer.StatusCode != 201 {
			t.Fatalf("slow body %d is answered with %v, %v", i, answer, err)
		}
	}
	await.Until(t, "the memory is free", func() bool { return s.bytesTaken() == 0 })
}

// Bodies that are large and do not end are refused beyond an eighth of the memory for a client, and beyond all of it for all clients.
func TestTheMemoryOfBodiesIsBounded(t *testing.T) {
	const largest = 64 << 10
	config := withTokens(t)
	config.MaxBody, config.MaxRequests = largest, 16 // so a client has the memory of two bodies
	s := newStage(t, config)
	most := func(bodies int64) func() bool { return func() bool { return s.bytesTaken() == bodies*largest } }
	large := `"` + strings.Repeat("x", largest-10)
	for i := range 2 {
		s.half("a-producer", large, largest)
		await.Until(t, "a large body has arrived", most(int64(i)+1))
	}
	if a := s.want(429, "POST", "tasks", `{"kind":"k"}`, as("a-producer")); a.word() != "too_many" || a.header.Get("Retry-After") != "1" {
		t.Errorf("a third body of the client: %s", a.body)
	}
	s.want(200, "GET", "queues", "", as("a-producer")) // this needs no memory
	s.want(201, "POST", "tasks", `{"kind":"k"}`, as("an-operator"))
	await.Until(t, "only the large bodies are left", most(2))

	s.server.memory.share = s.server.memory.most
	for i := 2; i < 16; i++ {
		s.half("a-worker", large, largest) // refused later, for its role: it has memory only as long as it arrives
		s.half("an-operator", large, largest)
	}
	await.Until(t, "all memory is used", func() bool { return s.bytesTaken() > s.server.memory.most-firstPart })
	if a := s.want(503, "POST", "tasks", `{"kind":"k"}`, as("an-operator")); a.word() != "busy" || a.header.Get("Retry-After") != "1" {
		t.Errorf("a body too many: %s", a.body)
	}
	if taken := s.bytesTaken(); taken > s.server.memory.most {
		t.Errorf("the bodies have %d bytes, and may have %d", taken, s.server.memory.most)
	}
}
