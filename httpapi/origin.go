package httpapi

import (
	"net/http"
	"slices"
)

// letRead lets pages of the Origins of the Config read answers. A browser asks with OPTIONS before a page of another site sends JSON or a
// header Authorization: letRead answers that, and reports whether it has.
func (s *Server) letRead(w http.ResponseWriter, r *http.Request) (answered bool) {
	if len(s.config.Origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if !slices.Contains(s.config.Origins, origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Traceparent, Tracestate")
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
