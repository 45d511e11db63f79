package queue

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
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
// rediss, rediss+cluster and rediss+sentinel use TLS. After a ? follow options by the names that
// go-redis gives them (pool_size=50), and these:
//
//	tls_ca=/path/ca.crt                         the authority that signs the server's certificate, in place of the system's
//	tls_cert=/path/client.crt                   the certificate of the client, if the server requires one
//	tls_key=/path/client.key                    its key
//	sentinel_username=…, sentinel_password=…    for sentinels that require a password
//
// The files are in PEM format. User and password before the host are those of Redis.
//
// No error contains the URL, since it can contain a password.
func Connect(address string) (redis.UniversalClient, error) {
	address, certificates, err := takeCertificates(address)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(address, "unix:") {
		return connectServer(address, certificates)
	}
	u, err := parseGroup(address)
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

// badURL returns an error about a URL, whose text continues "the Redis URL". The error never quotes
// the URL, because a URL can contain a password.
func badURL(problem string) error {
	return fmt.Errorf("%w: the Redis URL %s", refusal.ErrInvalid, problem)
}

// unreadable matches go-redis' errors about an option whose value it cannot read. It takes only the
// option's name and type, because the rest of the error can quote the URL.
var unreadable = regexp.MustCompile(`^redis: invalid ([a-z_]+) (number|duration|boolean)\b`)

// badPart returns the error for a URL that go-redis refuses. form is a valid URL, as an example.
func badPart(err error, form string) error {
	problem := "has an unknown part or option"
	if option := unreadable.FindStringSubmatch(err.Error()); option != nil {
		problem = "has a value for " + option[1] + " that is not a " + option[2]
	}
	return badURL(problem + ": write " + form + ", and after ? only options that go-redis knows")
}

const malformed = "is malformed: write redis://user:password@host:6379/0, and write special characters of a password as %XX"

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
		return nil, badPart(err, "redis://user:password@host:6379/0")
	}
	// Without this option a context's deadline does not end a read, so a server that hangs would
	// hold a call for the whole ReadTimeout.
	options.ContextTimeoutEnabled = true
	if options.PoolSize == 0 {
		options.PoolSize = poolSize
	}
	certificates.addTo(options.TLSConfig)
	return redis.NewClient(options), nil
}

// groupURL is a parsed URL with any number of hosts. Package net/url does not parse several hosts.
type groupURL struct {
	url.URL          // of the first host, with scheme redis or rediss
	kind    string   // "", cluster or sentinel
	hosts   []string // with ports
}

// parseGroup parses a URL whose scheme begins with redis.
func parseGroup(address string) (*groupURL, error) {
	scheme, rest, separated := strings.Cut(address, "://")
	scheme, kind, _ := strings.Cut(scheme, "+")
	port, isKind := map[string]string{"": "6379", "cluster": "6379", "sentinel": "26379"}[kind]
	if !separated || scheme != "redis" && scheme != "rediss" || !isKind || strings.HasSuffix(address[:strings.Index(address, "://")], "+") {
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
		server, err := url.Parse(scheme + "://" + rest[:at] + host + rest[end:])
		if err != nil {
			return nil, badURL(malformed)
		}
		if server.Hostname() == "" {
			return nil, badURL("must name a host between redis:// and the path, and between commas")
		}
		if server.Port() == "" {
			server.Host = net.JoinHostPort(server.Hostname(), port)
		}
		if len(u.hosts) == 0 {
			u.URL = *server
		}
		u.hosts = append(u.hosts, server.Host)
	}
	return u, nil
}

// names returns the elements of the path: of a sentinel URL the master's name and the database.
func (u *groupURL) names() []string {
	return slices.DeleteFunc(strings.Split(u.Path, "/"), func(name string) bool { return name == "" })
}

// forGoRedis returns the URL in go-redis' form, in which the query holds all hosts but the first,
// and other parameters.
func (u *groupURL) forGoRedis(parameters url.Values) string {
	out := u.URL
	query := out.Query()
	for name, values := range parameters {
		query[name] = values
	}
	query["addr"] = u.hosts[1:]
	out.RawQuery, out.Fragment = query.Encode(), ""
	return out.String()
}

func (u *groupURL) connectCluster(certificates *certificates) (redis.UniversalClient, error) {
	if names := u.names(); len(names) > 0 && !(len(names) == 1 && names[0] == "0") {
		return nil, badURL("names a database, but a cluster has only database 0: write redis+cluster://user:password@host:6379,host:6379")
	}
	options, err := redis.ParseClusterURL(u.forGoRedis(nil))
	if err != nil {
		return nil, badPart(err, "redis+cluster://user:password@host:6379,host:6379")
	}
	certificates.addTo(options.TLSConfig)
	return ConnectCluster(options), nil
}

func (u *groupURL) connectSentinel(certificates *certificates) (redis.UniversalClient, error) {
	names := u.names()
	if len(names) < 1 || len(names) > 2 {
		return nil, badURL("must end with the sentinels' name of the master and an optional database: redis+sentinel://user:password@host:26379,host:26379/master/0")
	}
	// go-redis expects the sentinels' password before the hosts, and takes the password of Redis from the options.
	user, query := u.User, u.Query()
	u.User = url.UserPassword(query.Get("sentinel_username"), query.Get("sentinel_password"))
	query.Del("sentinel_username")
	query.Del("sentinel_password")
	u.RawQuery = query.Encode()
	u.Path = "/" + strings.Join(names[1:], "")
	options, err := redis.ParseFailoverURL(u.forGoRedis(url.Values{"master_name": names[:1]}))
	if err != nil {
		return nil, badPart(err, "redis+sentinel://user:password@host:26379,host:26379/master/0")
	}
	if user != nil {
		options.Username = user.Username()
		options.Password, _ = user.Password()
	}
	certificates.addTo(options.TLSConfig)
	return ConnectSentinel(options), nil
}
