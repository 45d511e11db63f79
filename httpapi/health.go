package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// health is the answer of /healthz and /readyz.
type health struct {
	Status   string    `json:"status"` // ok, or failing
	Sentence string    `json:"sentence"`
	ReadAt   time.Time `json:"read_at"` // when the answer was made
}

// healthz says whether the last read of Redis was answered in time. It makes that read, for each namespace.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	s.tellHealth(w, r, s.check())
}

// readyz says whether the server can do its work, and is not about to stop.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Load() {
		s.tellHealth(w, r, "the server stops")
		return
	}
	s.tellHealth(w, r, s.check())
}

// checks is a read of all namespaces that requests share, so that they cannot keep Redis busy.
type checks struct {
	mu   sync.Mutex
	last *check // nil, or under way
}

type check struct {
	began time.Time
	done  chan struct{}
	bad   string
}

// check returns what is wrong, or "". A check that is under way counts if it fails. Its success may be older than the request.
func (s *Server) check() string {
	for arrived := time.Now(); ; {
		c := s.checks.join(s)
		<-c.done
		if c.bad != "" || !c.began.Before(arrived) {
			return c.bad
		}
	}
}

// join returns the check that is under way, or begins one.
func (all *checks) join(s *Server) *check {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.last == nil {
		c := &check{began: time.Now(), done: make(chan struct{})}
		all.last = c
		go func() {
			c.bad = s.look(context.Background()) // it does not depend on the first request
			all.mu.Lock()
			all.last = nil
			all.mu.Unlock()
			close(c.done)
		}()
	}
	return all.last
}

// look reads each namespace, all at once. It returns what is wrong, or "".
func (s *Server) look(ctx context.Context) string {
	var mu sync.Mutex
	var looks sync.WaitGroup
	bad := ""
	for _, space := range s.spaces {
		looks.Go(func() {
			if err := space.answers(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				bad = failureOf(err).Error()
			}
		})
	}
	looks.Wait()
	return bad
}

func (s *Server) tellHealth(w http.ResponseWriter, r *http.Request, bad string) {
	if !s.onlyReads(w, r) {
		return
	}
	if bad != "" {
		s.answer(w, http.StatusServiceUnavailable, health{"failing", bad, time.Now()})
		return
	}
	s.answer(w, http.StatusOK, health{"ok", "the last read of Redis was in time", time.Now()})
}

// onlyReads reports whether a request only reads, and answers it otherwise.
func (s *Server) onlyReads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	s.answerError(w, fail(http.StatusMethodNotAllowed, "no_method", "%q cannot be used here: use GET or HEAD", r.Method))
	return false
}

// metrics answers /metrics to those who may read.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if !s.onlyReads(w, r) {
		return
	}
	if _, f := s.admit(w, r, Read); f != nil {
		s.answerError(w, f)
		return
	}
	s.config.Metrics.ServeHTTP(w, r)
}
