package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Role is a set of permissions of a client.
type Role string

// The roles. Each includes Read, and Operate includes all.
const (
	Read    Role = "read"    // see tasks, queues, kinds, workers, agents, flows, events and metrics
	Produce Role = "produce" // enqueue, cancel and retry tasks, start and resume runs of flows, settle promises, send signals
	Work    Role = "work"    // run tasks and agents
	Operate Role = "operate" // control queues, kinds and workers, store definitions of flows, delete records, change many tasks at once
)

var roles = []Role{Read, Produce, Work, Operate}

// Identity is the name and the roles of a client.
type Identity struct {
	Name  string
	Roles []Role
	// Valid, if it is not nil, is called about every second while a request of the client waits or receives a stream. The request ends
	// when Valid returns false. It is called by several goroutines.
	Valid func() bool

	busy bool // too many passwords are checked at once, so the client is not known yet
}

// may reports whether one of the roles includes role.
func (i Identity) may(role Role) bool {
	for _, mine := range i.Roles {
		if mine == role || mine == Operate || role == Read && mine != "" {
			return true
		}
	}
	return false
}

// same reports whether the line of a client in its file has not changed.
func (i Identity) same(other Identity) bool {
	return i.Name == other.Name && slices.Equal(i.Roles, other.Roles)
}

// An Authenticator identifies the client that sent a request. It returns known = false if it cannot. Then the next Authenticator is
// called.
type Authenticator func(r *http.Request) (who Identity, known bool)

// checkAddress refuses requests for another host, and paths that programs read in different ways.
func (s *Server) checkAddress(r *http.Request) *failure {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if !slices.Contains(s.config.Hosts, "*") && !slices.Contains(s.config.Hosts, host) {
		return fail(http.StatusForbidden, "wrong_host", "this server has another name than the Host of the request: use its name, or have this one allowed (--allow-host of curfew serve, Hosts of a program in Go)").of("Host")
	}
	p := r.URL.Path
	encoded := strings.ToLower(r.URL.EscapedPath())
	if p == "" || p[0] != '/' || strings.Contains(encoded, "%5c") || strings.ContainsFunc(p, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) ||
		path.Clean(p) != p && p != "/" {
		return fail(http.StatusNotFound, "no_route", "the path must have no empty part, no dots, no backslash and no control characters")
	}
	return nil
}

// admit identifies the client of a request, and checks that it has a role.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, role Role) (Identity, *failure) {
	identity := Identity{Name: "anybody", Roles: roles}
	if !s.config.Public {
		valid := false
		for _, authenticate := range s.config.Auth {
			if identity, valid = authenticate(r); valid {
				break
			}
			if identity.busy {
				return identity, fail(http.StatusTooManyRequests, "too_many", "too many passwords are checked at the same time: make the request again").retry(time.Second)
			}
		}
		if !valid {
			w.Header().Set("WWW-Authenticate", `Bearer realm="curfew"`)
			w.Header().Add("WWW-Authenticate", `Basic realm="curfew", charset="UTF-8"`)
			if f := s.rates.take("? " + clientAddress(r)); f != nil {
				return Identity{}, f
			}
			return Identity{}, fail(http.StatusUnauthorized, "unauthorized", "the server does not know this client: send a valid token or password in the header Authorization, or come through the proxy that names clients")
		}
	}
	if f := s.rates.take(s.clientName(r, identity)); f != nil {
		return identity, f
	}
	if err := s.origins.Check(r); err != nil {
		return identity, fail(http.StatusForbidden, "cross_site", "a page of another site has sent this request: changes are accepted from pages of the same origin only").of("Origin")
	}
	if !identity.may(role) {
		return identity, fail(http.StatusForbidden, "forbidden", "this request needs the role %s, which %s does not have", role, identity.Name)
	}
	return identity, nil
}

// clientName distinguishes clients by their names, and by their addresses if everybody is let in.
func (s *Server) clientName(r *http.Request, who Identity) string {
	if s.config.Public {
		return "address " + clientAddress(r)
	}
	return "name " + who.Name
}

// clientAddress returns the address of a client without its port.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// allowOrigin lets pages of the Origins of the Config read answers. A browser asks with OPTIONS before a page of another site sends JSON or a
// header Authorization: allowOrigin answers that, and reports whether it has.
func (s *Server) allowOrigin(w http.ResponseWriter, r *http.Request) (answered bool) {
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

// validEvery is the time between two calls of Identity.Valid.
const validEvery = time.Second

var errRevoked = errors.New("the client is no longer known")

// whileValid returns a context that ends with errRevoked when the Identity of a client that waits or receives a stream is no longer valid.
func (c *call) whileValid(ctx context.Context) (_ context.Context, stop func()) {
	if c.who.Valid == nil || !c.waits() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(validEvery)
		defer ticker.Stop()
		for c.who.Valid() {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
		cancel(errRevoked)
	}()
	return ctx, func() { cancel(nil) }
}

// revoked returns the failure of a request that waited when its client was removed.
func revoked() *failure {
	f := fail(http.StatusUnauthorized, "unauthorized", "the server no longer knows this client, or has given it other roles: send a token or password that is valid now")
	f.cause = errRevoked
	return f
}
