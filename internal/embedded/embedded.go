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

	mu      sync.Mutex
	clients []*redis.Client
}

// Start starts a server on a free port of the loopback interface. Its clock is
// the machine's until SetTime, and keys expire by that clock.
func Start() (*Server, error) {
	mini := miniredis.NewMiniRedis()
	if err := mini.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	mini.ClockTTL(true) // left alone, miniredis never lets a key expire
	return &Server{mini: mini, addr: mini.Addr()}, nil
}

// Addr is where it listens, host:port.
func (s *Server) Addr() string { return s.addr }

// Client is a new client of this server. Close closes it, if the caller has not.
func (s *Server) Client() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.addr})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, rdb)
	return rdb
}

// SetTime stops the clock at an instant: TIME in scripts and the expiry of keys
// go by it. The zero time lets the clock run again, by the machine's.
func (s *Server) SetTime(t time.Time) { s.mini.SetTime(t) }

// Close ends its clients' connections and the server. What it held is gone.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rdb := range s.clients {
		rdb.Close()
	}
	s.clients = nil
	s.mini.Close()
}
