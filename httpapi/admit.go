package httpapi

import (
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// Identity is who a client is, and what it may do.
type Identity struct {
	Name  string
	Roles []Role
	// Valid, if it is not nil, is called about every second while a request of the client waits or receives a stream. The request ends
	// when Valid returns false. It is called by several goroutines.
	Valid func() bool

	busy bool // too many passwords are checked at once, so the client is not known yet
}

// may reports whether one of the roles includes another one.
func (i Identity) may(role Role) bool {
	for _, mine := range i.Roles {
		if mine == role || mine == Operate || role == Read && mine != "" {
			return true
		}
	}
	return false
}

// same reports whether the line of a client has not changed.
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
	who := Identity{Name: "anybody", Roles: roles}
	if !s.config.Public {
		known := false
		for _, authenticate := range s.config.Auth {
			if who, known = authenticate(r); known {
				break
			}
			if who.busy {
				return who, fail(http.StatusTooManyRequests, "too_many", "too many passwords are checked at the same time: make the request again").retry(time.Second)
			}
		}
		if !known {
			w.Header().Set("WWW-Authenticate", `Bearer realm="curfew"`)
			w.Header().Add("WWW-Authenticate", `Basic realm="curfew", charset="UTF-8"`)
			if f := s.rates.take("? " + addressOf(r)); f != nil {
				return Identity{}, f
			}
			return Identity{}, fail(http.StatusUnauthorized, "unauthorized", "the server does not know this client: send a valid token or password in the header Authorization, or come through the proxy that names clients")
		}
	}
	if f := s.rates.take(s.clientOf(r, who)); f != nil {
		return who, f
	}
	if err := s.origins.Check(r); err != nil {
		return who, fail(http.StatusForbidden, "cross_site", "a page of another site has sent this request: changes are accepted from pages of the same origin only").of("Origin")
	}
	if !who.may(role) {
		return who, fail(http.StatusForbidden, "forbidden", "this request needs the role %s, which %s does not have", role, who.Name)
	}
	return who, nil
}

// clientOf distinguishes clients by their names, and by their addresses if everybody is let in.
func (s *Server) clientOf(r *http.Request, who Identity) string {
	if s.config.Public {
		return "address " + addressOf(r)
	}
	return "name " + who.Name
}

// addressOf returns the address of a client without its port.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// enter takes a place among the requests that are under way.
func (s *Server) enter(waits bool) (leave func(), f *failure) {
	places, what := s.requests, "requests"
	if waits {
		places, what = s.waiting, "requests that wait"
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, fail(http.StatusServiceUnavailable, "busy", "the server has as many %s as it can have: make the request again later", what).retry(time.Second)
	}
}
