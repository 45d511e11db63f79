// Package embedded runs a Redis server in the process, for `curfew dev`, for tests that need no other
// program, and for users who test their handlers. Any Redis client can connect to a server with a port, over
// loopback; a server without one has clients in the process only. It keeps all data in memory, and Close
// deletes the data.
//
// The server is miniredis. It supports what Curfew's scripts need, but it shows nothing about speed, memory
// limits, persistence or clusters.
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
	addr string        // empty without a port
	done chan struct{} // closed by Close
	aged chan struct{} // closed when age has returned

	mu      sync.Mutex
	clients []*redis.Client
	set     time.Time // the instant at which SetTime stopped the clock; zero if it runs
	seen    time.Time // the instant up to which keys have expired
	closed  bool
}

// Start starts a server on a free port of the loopback interface. Its clock is that of the machine until
// SetTime. Keys expire by that clock, up to a second late.
func Start() (*Server, error) { return StartOn(0) }

// StartOn is Start on a port of the loopback interface; 0 is any free one.
func StartOn(port int) (*Server, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.StartAddr(fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	s, err := serve(mini, mini.Addr())
	if err == nil {
		go s.age()
	}
	return s, err
}

// StartWithoutPort starts a server to which only Client connects, in memory. It can be used in a bubble of
// testing/synctest, whose clock is then its clock. Keys expire at their instant: it looks for them whenever the
// time has changed, so a clock that runs would make it slow.
func StartWithoutPort() (*Server, error) {
	mini := miniredis.NewMiniRedis()
	first, err := mini.Dial() // starts it
	if err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	first.Close()
	s, err := serve(mini, "")
	if err == nil {
		mini.ClockTTL(true)
		close(s.aged)
	}
	return s, err
}

func serve(mini *miniredis.Miniredis, addr string) (*Server, error) {
	s := &Server{mini: mini, addr: addr, done: make(chan struct{}), aged: make(chan struct{}), seen: time.Now()}
	if err := s.serveFacade(); err != nil {
		mini.Close()
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	s.serveInfo()
	return s, nil
}

// age expires keys, which miniredis does not do by itself. (Its option ClockTTL would, but it checks every
// key at every command: 500 tasks took 40 times as long.)
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

// expire removes the keys that have expired. The caller holds mu.
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

// Addr returns the address of the server, host:port, and "" for a server without a port.
func (s *Server) Addr() string { return s.addr }

// Client returns a new client of this server. Close closes it if the caller has not.
func (s *Server) Client() *redis.Client {
	options := &redis.Options{Addr: s.addr, ContextTimeoutEnabled: true}
	if s.addr == "" {
		options.Dialer = s.dial
		// An address without a name. go-redis looks up a name, which it does not need here, and the first look-up
		// of a process, if it is in a bubble, breaks all later ones.
		options.Addr = "127.0.0.1:0"
		// More than a test has calls at a time. go-redis shares the timers of calls that wait for a connection between
		// all clients, and a timer that was made in a bubble ends the program when it is used outside.
		options.PoolSize = 1024
	}
	rdb := redis.NewClient(options)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, rdb)
	return rdb
}

// SetTime stops the clock at an instant, for TIME in scripts and for the expiry of keys. With the zero
// time the clock is that of the machine again.
func (s *Server) SetTime(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mini.SetTime(t)
	s.set = t
	if s.addr != "" {
		s.expire()
	}
}

// Close closes the clients and the server, and deletes its data. Further calls do nothing.
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
