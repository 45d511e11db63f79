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

// badURL returns an error that says what is wrong with a URL. It never quotes the URL.
func badURL(what string) error { return fmt.Errorf("%w: the Redis URL %s", refusal.ErrInvalid, what) }

// unreadable matches the names and types of options whose values go-redis cannot read. The names are those of
// go-redis: other parts of its errors can quote the URL.
var unreadable = regexp.MustCompile(`^redis: invalid ([a-z_]+) (number|duration|boolean)\b`)

// badPart returns the error for a URL that go-redis refuses. form is a good one.
func badPart(err error, form string) error {
	what := "has an unknown part or option"
	if option := unreadable.FindStringSubmatch(err.Error()); option != nil {
		what = "has a value for " + option[1] + " that is not a " + option[2]
	}
	return badURL(what + ": write " + form + ", and after ? only options that go-redis knows")
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
	// Without it a context's deadline does not end a read, and a server that hangs holds
	// a call for the whole ReadTimeout.
	options.ContextTimeoutEnabled = true
	if options.PoolSize == 0 {
		options.PoolSize = poolSize
	}
	certificates.addTo(options.TLSConfig)
	return redis.NewClient(options), nil
}

// groupURL is a URL that can name several hosts. Package net/url does not read those.
type groupURL struct {
	url.URL          // of the first host, with scheme redis or rediss
	kind    string   // "", cluster or sentinel
	hosts   []string // with ports
}

// takeApart parses the URLs whose scheme begins with redis.
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

// names returns the parts of the path.
func (u *groupURL) names() []string {
	return slices.DeleteFunc(strings.Split(u.Path, "/"), func(name string) bool { return name == "" })
}

// forGoRedis returns the URL in the form of go-redis: further hosts and other parameters are in
// the query.
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
