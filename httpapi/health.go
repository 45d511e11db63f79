package httpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// health is the answer of /healthz and /readyz.
type health struct {
	Status   string    `json:"status"` // ok, or failing
	Sentence string    `json:"sentence"`
	Missing  []string  `json:"missing,omitempty"` // namespaces that do not exist, or are being removed
	ReadAt   time.Time `json:"read_at"`           // when the answer was made
}

// healthz reads each namespace, and fails if Redis does not answer in time. A missing namespace is no failure, because a restart of the
// server does not bring it back.
func (s *Server) healthz(w http.ResponseWriter, r *http.Request) {
	result := s.check()
	s.answerHealth(w, r, result.bad, result.missing)
}

// readyz fails when healthz does, when the server is about to stop, and when none of its namespaces exists.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.stopping.Load() {
		s.answerHealth(w, r, "the server stops", nil)
		return
	}
	result := s.check()
	if len(result.missing) == len(s.spaces) {
		result.bad = cmp.Or(result.bad, missingInWords(result.missing))
	}
	s.answerHealth(w, r, result.bad, result.missing)
}

func missingInWords(names []string) string {
	return "these namespaces do not exist, or are being removed: " + strings.Join(names, ", ")
}

// checks is a read of all namespaces that requests share, so that they cannot keep Redis busy.
type checks struct {
	mu   sync.Mutex
	last *check // nil, or under way
}

type check struct {
	began time.Time
	done  chan struct{}
	finding
}

// finding is the result of a look at all namespaces.
type finding struct {
	bad     string // which namespaces cannot be read, and why; "" if all can
	missing []string
}

// check looks at all namespaces. It shares a check that is under way if that fails. A success may be older than the request.
func (s *Server) check() finding {
	for arrived := time.Now(); ; {
		c := s.checks.join(s)
		<-c.done
		if c.bad != "" || !c.began.Before(arrived) {
			return c.finding
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
			c.finding = s.look(context.Background()) // it does not depend on the first request
			all.mu.Lock()
			all.last = nil
			all.mu.Unlock()
			close(c.done)
		}()
	}
	return all.last
}

// look reads each namespace, all at once.
func (s *Server) look(ctx context.Context) finding {
	var mu sync.Mutex
	var looks sync.WaitGroup
	errs := map[string]error{}
	for name, space := range s.spaces {
		looks.Go(func() {
			if err := space.look(ctx); err != nil {
				mu.Lock()
				errs[name] = err
				mu.Unlock()
			}
		})
	}
	looks.Wait()
	var result finding
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(errs)) {
		if err := errs[name]; errors.Is(err, refusal.ErrNoNamespace) || errors.Is(err, refusal.ErrRemoving) {
			result.missing = append(result.missing, name)
		} else {
			bad = append(bad, "namespace "+name+": "+failureOf(err).Error())
		}
	}
	result.bad = strings.Join(bad, "; ")
	return result
}

// look makes an empty call to each shard, and returns an error if one does not reply in time.
func (s *space) look(ctx context.Context) error {
	ctx, stop := s.server.silence(ctx, nil)
	defer stop()
	if _, err := s.queue(ctx); err != nil {
		return err
	}
	errs := make([]error, len(s.shards))
	var calls sync.WaitGroup
	for i, shard := range s.shards {
		calls.Go(func() { errs[i] = shard.reply(ctx) })
	}
	calls.Wait()
	return cmp.Or(errs...)
}

func (s *Server) answerHealth(w http.ResponseWriter, r *http.Request, bad string, missing []string) {
	if !s.requireGet(w, r) {
		return
	}
	answer := health{Status: "ok", Sentence: "the last read of Redis was in time", Missing: missing, ReadAt: time.Now()}
	if missing != nil {
		answer.Sentence += "; " + missingInWords(missing)
	}
	status := http.StatusOK
	if bad != "" {
		answer.Status, answer.Sentence, status = "failing", bad, http.StatusServiceUnavailable
	}
	s.answer(w, status, answer)
}

// requireGet reports whether a request only reads, and answers it otherwise.
func (s *Server) requireGet(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	s.answerError(w, fail(http.StatusMethodNotAllowed, "no_method", "%q cannot be used here: use GET or HEAD", r.Method))
	return false
}

// metrics answers /metrics to those who may read.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if !s.requireGet(w, r) {
		return
	}
	if _, f := s.admit(w, r, Read); f != nil {
		s.answerError(w, f)
		return
	}
	s.config.Metrics.ServeHTTP(w, r)
}
