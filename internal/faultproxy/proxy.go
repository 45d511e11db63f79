// Package faultproxy stands between a client and a Redis in tests, and loses what a
// network loses: a reply after the script has run, a request before it arrived, a
// connection, everything. It knows which reply answers which request, so a test says
// what is lost by what was asked, and not by counting bytes.
//
// What no fault meets passes unchanged: blocking commands, pushes of RESP3. From its
// first SUBSCRIBE (or MONITOR) on, a connection passes as it is, since what comes then
// answers nothing; a fault may meet that first request.
package faultproxy

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy listens in front of a server.
type Proxy struct {
	Addr string // where clients connect, host:port

	upstream    string
	listener    net.Listener
	partitioned atomic.Bool
	said        atomic.Pointer[string] // nil: requests go to the server
	running     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	hooks  []*Hook
	links  map[*link]bool
}

// Start starts a proxy in front of upstream, host:port. It ends with the test.
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

// CutReply loses the next n replies to matching requests: the server gets the
// request, and when it has answered, the client's connection is closed instead of the
// answer being passed on. NOSCRIPT does not count, since then nothing has run.
func (p *Proxy) CutReply(match func(args [][]byte) bool, n int) *Hook {
	return p.add(cutReply, match, n)
}

// CutRequest loses the next n matching requests: the connection is closed before the
// server hears of it.
func (p *Proxy) CutRequest(match func(args [][]byte) bool, n int) *Hook {
	return p.add(cutRequest, match, n)
}

// Hold keeps back the replies to matching requests, and what follows them on their
// connection, until Release. The server has run what they ask. NOSCRIPT passes.
func (p *Proxy) Hold(match func(args [][]byte) bool) *Hook {
	return p.add(hold, match, -1)
}

// Release passes on all that is held. Later requests are not held any more.
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

// Partition swallows everything in both directions, of new connections too, until it
// is healed with false. Then connections that lost something are closed, and those
// that had nothing to say go on.
func (p *Proxy) Partition(on bool) {
	p.partitioned.Store(on)
	if !on {
		p.closeLinks(func(l *link) bool { return l.lost.Load() })
	}
}

// Say has every request answered with a line, as a server would that is loading, or is no
// Redis: Say("-LOADING Redis is loading"). Say("") ends it. It closes every connection.
func (p *Proxy) Say(line string) {
	p.said.Store(&line)
	if line == "" {
		p.said.Store(nil)
	}
	p.CloseAll()
}

// CloseAll closes every connection. New ones are accepted.
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

// end closes everything and waits until nothing runs.
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
			client.Close() // the server is away: so are we
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
