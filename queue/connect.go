package queue

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/refusal"
)

// Connect makes a client for a URL, with the options that Curfew works best with:
//
//	redis://user:password@host:6379/0                              one server
//	unix:///path                                                   one server, by its socket
//	redis+cluster://user:password@host:6379,host:6379              a cluster, by any of its nodes
//	redis+sentinel://user:password@host:26379,host:26379/master/0  the master that these sentinels watch
//
// rediss, rediss+cluster and rediss+sentinel are the same over TLS. What follows a ? are
// options by go-redis' names (pool_size=50). With tls_ca=/path/ca.crt the server's certificate
// must be signed by that authority, in place of those of the system; tls_cert=/path/client.crt and
// tls_key=/path/client.key are the certificate that the server wants of clients. All are PEM files. User and password are those of Redis; for
// sentinels that ask for some too, add ?sentinel_username=…&sentinel_password=….
//
// No error of it holds the URL, which may hold a password.
func Connect(address string) (redis.UniversalClient, error) {
	address, certificates, err := takeCertificates(address)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(address, "unix:") {
		return connectServer(address, certificates)
	}
	u, err := takeApart(address)
	if err != nil {
		return nil, err
	}
	switch {
	case u.kind == "cluster":
		return u.connectCluster(certificates)
	case u.kind == "sentinel":
		return u.connectSentinel(certificates)
	case len(u.hosts) > 1:
		return nil, badURL("names several servers: begin with redis+cluster:// or redis+sentinel://, or leave one")
	}
	return connectServer(address, certificates)
}

// badURL says what is wrong with a URL, and nothing of what it says.
func badURL(what string) error { return fmt.Errorf("%w: the Redis URL %s", refusal.ErrInvalid, what) }

const malformed = "is malformed: write redis://user:password@host:6379/0, and special characters of a password as %XX"

func connectServer(address string, certificates *certificates) (redis.UniversalClient, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, badURL(malformed)
	}
	if parsed.Opaque != "" || parsed.Scheme != "unix" && parsed.Host == "" {
		return nil, badURL("must begin with redis://, rediss:// or unix://, and name a host or a socket")
	}
	options, err := redis.ParseURL(address)
	if err != nil {
		return nil, badURL("has a part that is not understood: write redis://user:password@host:6379/0, and nothing after ? that go-redis does not know")
	}
	// Without it a context's deadline does not end a read, and a hung server holds
	// a call for as long as the read limit says.
	options.ContextTimeoutEnabled = true
	if options.PoolSize == 0 {
		options.PoolSize = poolSize
	}
	certificates.addTo(options.TLSConfig)
	return redis.NewClient(options), nil
}

// groupURL is a URL that may name several hosts, which net/url does not know.
type groupURL struct {
	url.URL          // of the first host, with a scheme that go-redis knows
	kind    string   // "", cluster or sentinel
	hosts   []string // with ports
}

// takeApart reads the forms with a redis scheme.
func takeApart(address string) (*groupURL, error) {
	scheme, rest, found := strings.Cut(address, "://")
	scheme, kind, _ := strings.Cut(scheme, "+")
	port, known := map[string]string{"": "6379", "cluster": "6379", "sentinel": "26379"}[kind]
	if !found || scheme != "redis" && scheme != "rediss" || !known || strings.HasSuffix(address[:strings.Index(address, "://")], "+") {
		return nil, badURL("must begin with redis://, rediss:// or unix://, and name a host or a socket; " +
			"redis+cluster:// and redis+sentinel:// name several hosts")
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	u := &groupURL{kind: kind}
	for host := range strings.SplitSeq(rest[at:end], ",") {
		one, err := url.Parse(scheme + "://" + rest[:at] + host + rest[end:])
		if err != nil {
			return nil, badURL(malformed)
		}
		if one.Hostname() == "" {
			return nil, badURL("must name a host between redis:// and the path, and between commas")
		}
		if one.Port() == "" {
			one.Host = net.JoinHostPort(one.Hostname(), port)
		}
		if len(u.hosts) == 0 {
			u.URL = *one
		}
		u.hosts = append(u.hosts, one.Host)
	}
	return u, nil
}

// names are the parts of the path.
func (u *groupURL) names() []string {
	return slices.DeleteFunc(strings.Split(u.Path, "/"), func(name string) bool { return name == "" })
}

// forGoRedis is the URL as go-redis writes it: further hosts and what else it wants
// are in the query.
func (u *groupURL) forGoRedis(more url.Values) string {
	out := u.URL
	query := out.Query()
	for name, values := range more {
		query[name] = values
	}
	query["addr"] = u.hosts[1:]
	out.RawQuery, out.Fragment = query.Encode(), ""
	return out.String()
}

func (u *groupURL) connectCluster(certificates *certificates) (redis.UniversalClient, error) {
	if names := u.names(); len(names) > 0 && !(len(names) == 1 && names[0] == "0") {
		return nil, badURL("names a database, and a cluster has only number 0: write redis+cluster://user:password@host:6379,host:6379")
	}
	options, err := redis.ParseClusterURL(u.forGoRedis(nil))
	if err != nil {
		return nil, badURL("has a part that is not understood: write redis+cluster://user:password@host:6379,host:6379, and nothing after ? that go-redis does not know")
	}
	certificates.addTo(options.TLSConfig)
	return ConnectCluster(options), nil
}

func (u *groupURL) connectSentinel(certificates *certificates) (redis.UniversalClient, error) {
	names := u.names()
	if len(names) < 1 || len(names) > 2 {
		return nil, badURL("must end with the name that the sentinels have for the master, and maybe a database: redis+sentinel://user:password@host:26379,host:26379/master/0")
	}
	// go-redis has the sentinels' password before the hosts, and that of Redis in the query.
	user, query := u.User, u.Query()
	u.User = url.UserPassword(query.Get("sentinel_username"), query.Get("sentinel_password"))
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	u.RawQuery = query.Encode()
	u.Path = "/" + strings.Join(names[1:], "")
	options, err := redis.ParseFailoverURL(u.forGoRedis(url.Values{"master_name": names[:1]}))
	if err != nil {
		return nil, badURL("has a part that is not understood: write redis+sentinel://user:password@host:26379,host:26379/master/0, and nothing after ? that go-redis does not know")
	}
	if user != nil {
		options.Username = user.Username()
		options.Password, _ = user.Password()
	}
	certificates.addTo(options.TLSConfig)
	return ConnectSentinel(options), nil
}
