package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/internal/logonce"
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

// queue returns the opened namespace. The first call opens it, and gives up after Config.Silence.
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
	ctx, stop := s.server.silence(ctx, nil)
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
	if existing := s.spaces[name]; existing != nil {
		return existing, nil
	}
	return nil, fail(http.StatusNotFound, "no_namespace", "this server does not serve the namespace %q", refusal.Clip(name)).of("namespace")
}

// trouble logs that Redis does not serve a namespace: when it begins, reminders in intervals that double, and when it ends.
type trouble struct {
	mu     sync.Mutex
	outage logonce.Trouble
}

// note notes the end of a request. f is nil if it was answered.
func (s *space) note(f *failure) {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	log := s.server.log.With("namespace", s.name)
	switch {
	case f == nil:
		if ended, lasted := s.trouble.outage.Over(); ended {
			log.Info("Requests are answered again", "lasted_ms", lasted.Milliseconds())
		}
	case f.status == http.StatusServiceUnavailable && slices.Contains([]string{"unavailable", "misconfigured", "no_namespace"}, f.Problem.Error.Word):
		if first, unlogged := s.trouble.outage.Failed(); first {
			log.Error("Requests cannot be answered: Redis is away, or refuses this server, or has lost the namespace", "error", cmp.Or(f.cause, error(f)), "not_logged_before", unlogged)
		}
	}
}
