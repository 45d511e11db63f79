package faults

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay forwards connections to a target that can be changed, as an operator or the DNS does after
// a failover. It does not parse the protocol, so a replica can connect through it too.
type relay struct {
	addr     string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	target string // "": connections fail
	conns  map[net.Conn]bool
}

func startRelay(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: listener.Addr().String(), listener: listener, target: target, conns: map[net.Conn]bool{}}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		listener.Close()
		r.to("")
		r.running.Wait()
	})
	return r
}

// to closes all connections, and forwards new ones to another target.
func (r *relay) to(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	for c := range r.conns {
		c.Close()
	}
}

func (r *relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.pass(from) })
	}
}

func (r *relay) pass(from net.Conn) {
	defer from.Close()
	r.mu.Lock()
	target := r.target
	r.mu.Unlock()
	to, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer to.Close()
	if !r.note(target, from, to) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { io.Copy(to, from); to.Close(); from.Close() })
	both.Go(func() { io.Copy(from, to); to.Close(); from.Close() })
	both.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, from)
	delete(r.conns, to)
}

// note records a pair of connections for to. It returns false if the target has changed meanwhile.
func (r *relay) note(target string, pair ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range pair {
		r.conns[c] = true
	}
	return r.target == target
}
