package httpapi

import (
	"cmp"
	"net/http"
	"slices"
	"sync"

	"github.com/curfew-dev/curfew/internal/logonce"
)

// trouble logs that Redis does not serve a namespace: when it begins, reminders in intervals that double, and when it ends.
type trouble struct {
	mu      sync.Mutex
	lasting logonce.Trouble
}

// note notes the end of a request. f is nil if it was answered.
func (s *space) note(f *failure) {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	log := s.server.log.With("namespace", s.name)
	switch {
	case f == nil:
		if over, lasted := s.trouble.lasting.Over(); over {
			log.Info("Requests are answered again", "lasted_ms", lasted.Milliseconds())
		}
	case f.status == http.StatusServiceUnavailable && slices.Contains([]string{"unavailable", "misconfigured", "no_namespace"}, f.Problem.Error.Word):
		if first, unlogged := s.trouble.lasting.Failed(); first {
			log.Error("Requests cannot be answered: Redis is away, or refuses this server, or has lost the namespace", "error", cmp.Or(f.cause, error(f)), "not_logged_before", unlogged)
		}
	}
}
