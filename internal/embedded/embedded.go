// Package embedded runs a server in the process, for `curfew dev`, for tests that
// need no other program, and for whoever tests handlers. It speaks to any Redis
// client over loopback, keeps everything in memory, and forgets it when it closes.
//
// It is miniredis. It does what Curfew's scripts need, but it is no evidence for
// speed, memory limits, persistence or a cluster.
package embedded

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Server is a running server.
type Server struct {
	mini *miniredis.Miniredis
	addr string
	done chan struct{} // closed by Close
	aged chan struct{} // closed when age has returned

	mu      sync.Mutex
	clients []*redis.Client
	set     time.Time // where SetTime stopped the clock; zero: it runs
	seen    time.Time // up to when keys have aged
	closed  bool
}

// Start starts a server on a free port of the loopback interface. Its clock is
// the machine's until SetTime, and keys expire by that clock, within a second.
func Start() (*Server, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	s := &Server{mini: mini, addr: mini.Addr(), done: make(chan struct{}), aged: make(chan struct{}), seen: time.Now()}
	go s.age()
	return s, nil
}

// age lets keys expire, which miniredis never does by itself. (Its ClockTTL does,
// by looking at every key at every command: 500 tasks took 40 times as long.)
func (s *Server) age() {
	defer close(s.aged)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
			s.mu.Lock()
			s.expire()
			s.mu.Unlock()
		}
	}
}

// expire ages the keys up to now. Caller holds mu.
func (s *Server) expire() {
	now := s.set
	if now.IsZero() {
		now = time.Now()
	}
	if d := now.Sub(s.seen); d > 0 {
		s.mini.FastForward(d)
	}
	s.seen = now
}

// Addr is where it listens, host:port.
func (s *Server) Addr() string { return s.addr }

// Client is a new client of this server. Close closes it, if the caller has not.
func (s *Server) Client() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, ContextTimeoutEnabled: true})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, rdb)
	return rdb
}

// SetTime stops the clock at an instant: TIME in scripts and the expiry of keys
// go by it. The zero time lets the clock run again, by the machine's.
func (s *Server) SetTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mini.SetTime(t)
	s.set = t
	s.expire()
}

// Close ends its clients' connections and the server. What it held is gone.
func (s *Server) Close() {
	s.mu.Lock()
	clients := s.clients
	s.clients = nil
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return
	}
	close(s.done)
	<-s.aged
	for _, rdb := range clients {
		rdb.Close()
	}
	s.mini.Close()
}
