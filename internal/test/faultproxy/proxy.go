// Package faultproxy is a proxy between a client and a Redis in tests. It loses what a network can
// lose: a reply after the script has run, a request before it arrives, a connection, or everything.
// It knows which reply belongs to which request, so a test selects faults by the request.
//
// Everything else passes unchanged, also blocking commands and RESP3 pushes. After the first
// SUBSCRIBE or MONITOR on a connection, no fault meets its later requests, because their replies
// cannot be told from messages. A fault can meet that first request.
package faultproxy

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy forwards connections to a server.
type Proxy struct {
	Addr string // where clients connect, host:port

	upstream    string
	listener    net.Listener
	partitioned atomic.Bool
	said        atomic.Pointer[string] // the reply of Say; nil: requests go to the server
	running     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	hooks  []*Hook
	links  map[*link]bool
}

// Start starts a proxy for the server at upstream, host:port, and closes it when the test ends.
func Start(tb testing.TB, upstream string) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Addr: listener.Addr().String(), upstream: upstream, listener: listener, links: map[*link]bool{}}
	p.running.Go(p.accept)
	tb.Cleanup(p.end)
	return p
}

// CutReply loses the next n replies to matching requests. The server runs the request. When it
// replies, the proxy closes the client's connection instead of forwarding the reply. A NOSCRIPT
// reply passes and does not count, because no script has run.
func (p *Proxy) CutReply(match func(args [][]byte) bool, n int) *Hook {
	return p.add(cutReply, match, n)
}

// CutRequest loses the next n matching requests. The proxy closes the connection instead of
// forwarding the request, so the server never runs it.
func (p *Proxy) CutRequest(match func(args [][]byte) bool, n int) *Hook {
	return p.add(cutRequest, match, n)
}

// Hold delays the replies to matching requests, and all later replies on their connections, until
// Release. The server runs the requests. A NOSCRIPT reply passes.
func (p *Proxy) Hold(match func(args [][]byte) bool) *Hook {
	return p.add(hold, match, -1)
}

// Release forwards all held replies, and removes all holds.
func (p *Proxy) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = slices.DeleteFunc(p.hooks, func(h *Hook) bool {
		if h.kind == hold {
			close(h.done)
		}
		return h.kind == hold
	})
}

// Partition(true) drops everything in both directions, also of new connections. Partition(false)
// ends that: it closes the connections that lost bytes, and the others continue.
func (p *Proxy) Partition(on bool) {
	p.partitioned.Store(on)
	if !on {
		p.closeLinks(func(l *link) bool { return l.lost.Load() })
	}
}

// Say makes the proxy reply to every request with a line, like a server that is loading or is not
// a Redis: Say("-LOADING Redis is loading"). Say("") ends that. Both close every connection.
func (p *Proxy) Say(line string) {
	p.said.Store(&line)
	if line == "" {
		p.said.Store(nil)
	}
	p.CloseAll()
}

// CloseAll closes every connection. The proxy still accepts new ones.
func (p *Proxy) CloseAll() { p.closeLinks(func(*link) bool { return true }) }

func (p *Proxy) add(k kind, match func([][]byte) bool, n int) *Hook {
	h := &Hook{kind: k, match: match, left: n, hits: make(chan struct{}, 1000), done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hooks = append(p.hooks, h)
	return h
}

func (p *Proxy) snapshot() []*Hook {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hooks)
}

func (p *Proxy) closeLinks(which func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if which(l) {
			l.close()
		}
	}
}

// end closes everything and waits for all goroutines.
func (p *Proxy) end() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.CloseAll()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			client.Close() // the server does not accept connections
			continue
		}
		l := &link{proxy: p, client: client, server: server, sent: make(chan request, 1024), over: make(chan struct{})}
		p.mu.Lock()
		p.links[l] = true
		if p.closed {
			l.close()
		}
		p.mu.Unlock()
		p.running.Go(func() { l.run(l.requests) })
		p.running.Go(func() { l.run(l.replies) })
	}
}
