package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// piece is how many bytes one connection passes before another one can pass some.
	piece = 16 << 10
	// slowBuffer is the size of the kernel's buffers for each connection. By default they take
	// megabytes at once.
	slowBuffer = 32 << 10
)

// Slow starts a proxy for upstream that passes rate bytes a second, for all connections and both
// directions together. It returns the address where clients connect. It does not parse requests,
// so it buffers at most 16 KiB for each direction of a connection. It closes when the test ends. passed returns how many bytes it has
// passed so far.
func Slow(tb testing.TB, upstream string, rate int) (addr string, passed func() int64) {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &slow{rate: rate, open: map[net.Conn]bool{}}
	s.running.Go(func() { s.accept(listener, upstream) })
	tb.Cleanup(func() {
		listener.Close()
		s.end()
	})
	return listener.Addr().String(), s.bytes.Load
}

type slow struct {
	rate    int
	bytes   atomic.Int64
	running sync.WaitGroup

	turn sync.Mutex // held while a piece passes
	free time.Time  // when the link has passed all pieces so far

	mu    sync.Mutex
	ended bool
	open  map[net.Conn]bool
}

func (s *slow) accept(listener net.Listener, upstream string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", upstream)
		if err != nil {
			client.Close()
			continue
		}
		for _, c := range []net.Conn{client, server} {
			c.(*net.TCPConn).SetReadBuffer(slowBuffer)
			c.(*net.TCPConn).SetWriteBuffer(slowBuffer)
		}
		if !s.keep(client, server) {
			return
		}
		s.running.Go(func() { s.relay(client, server) })
		s.running.Go(func() { s.relay(server, client) })
	}
}

func (s *slow) keep(conns ...net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		s.open[c] = true
		if s.ended {
			c.Close()
		}
	}
	return !s.ended
}

// relay forwards the bytes of one side. When one side ends, it closes both.
func (s *slow) relay(from, to net.Conn) {
	defer func() {
		from.Close()
		to.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, from)
		delete(s.open, to)
	}()
	b := make([]byte, piece)
	for {
		n, err := from.Read(b)
		s.pass(n)
		s.bytes.Add(int64(n))
		if _, failed := to.Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

// pass waits for as long as n bytes take on the link.
func (s *slow) pass(n int) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if now := time.Now(); s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(time.Duration(n) * time.Second / time.Duration(s.rate))
	// sleeps: the rate of the link
	time.Sleep(time.Until(s.free))
}

func (s *slow) end() {
	s.mu.Lock()
	s.ended = true
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}
