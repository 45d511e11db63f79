package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// space is a namespace that is served.
type space struct {
	server *Server
	name   string
	idle   idle  // requests that wait for tasks
	turns  turns // requests that take tasks
	hub    hub   // requests that wait for events

	mu     sync.Mutex
	opened *queue.Queue
	shards []*shard // of opened
	open   *opening // under way

	trouble trouble
}

// serve serves the namespace with an opened queue.
func (s *space) serve(q *queue.Queue) {
	s.opened, s.shards = q, shardsOf(s.server, q)
	s.observe(q)
}

// opening is an attempt to open the namespace. Requests share it.
type opening struct {
	done chan struct{}
	q    *queue.Queue
	err  error
}

// queue returns the opened namespace, and opens it if that was not done yet. It waits as long as Redis may be silent.
func (s *space) queue(ctx context.Context) (*queue.Queue, error) {
	s.mu.Lock()
	if s.opened != nil {
		defer s.mu.Unlock()
		return s.opened, nil
	}
	if s.open == nil {
		s.open = &opening{done: make(chan struct{})}
		go s.try(s.open)
	}
	o := s.open
	s.mu.Unlock()
	ctx, stop := s.server.silence(ctx)
	defer stop()
	select {
	case <-o.done:
		return o.q, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *space) try(o *opening) {
	ctx, stop := context.WithTimeout(s.server.draining, 10*time.Second)
	defer stop()
	o.q, o.err = s.server.config.Open(ctx, s.name)
	s.mu.Lock()
	if s.open = nil; o.err == nil {
		s.serve(o.q)
	}
	s.mu.Unlock()
	if o.err != nil {
		s.server.log.Debug("Cannot open the namespace", "namespace", s.name, "error", o.err)
	}
	close(o.done)
}

// find returns the namespace of a request.
func (s *Server) find(name string) (*space, *failure) {
	if found := s.spaces[name]; found != nil {
		return found, nil
	}
	return nil, fail(http.StatusNotFound, "no_namespace", "this server does not serve the namespace %q", refusal.Clip(name)).of("namespace")
}
