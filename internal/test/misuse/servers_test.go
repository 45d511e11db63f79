package misuse

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// connect returns a client for a URL.
func connect(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	rdb, err := queue.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// set starts a server and changes a setting.
func set(t *testing.T, setting, value string) *redistest.Server {
	t.Helper()
	s := redistest.Start(t)
	if err := s.Client(t).ConfigSet(t.Context(), setting, value).Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// secured starts a TLS server that wants a client certificate of the authority that it returns. The
// certificate of the server is valid until an instant.
func secured(t *testing.T, until time.Time) (addr string, a *authority) {
	t.Helper()
	a = newAuthority(t)
	certificate, key := a.signs(t, "server", until)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = free.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	free.Close()
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", a.file)
	return addr, a
}

// trusting returns a client that trusts an authority, and has no client certificate.
func trusting(t *testing.T, addr string, a *authority) redis.UniversalClient {
	t.Helper()
	text, err := os.ReadFile(a.file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	rdb := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, TLSConfig: &tls.Config{RootCAs: pool}})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// saying returns the address of a server that replies to each request with a line.
func saying(t *testing.T, line string) string {
	t.Helper()
	p := faultproxy.Start(t, redistest.Shared(t).Addr)
	p.Say(line)
	return p.Addr
}

// tries is a hook of a client. It counts the commands of a context that was made by counting.
type tries struct{}

func (tries) count(ctx context.Context) {
	if n, ok := ctx.Value(tries{}).(*atomic.Int64); ok {
		n.Add(1)
	}
}

// counting returns a context, and how many commands were made with it.
func counting(ctx context.Context) (context.Context, *atomic.Int64) {
	n := &atomic.Int64{}
	return context.WithValue(ctx, tries{}, n), n
}

// DialHook implements redis.Hook.
func (tries) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h tries) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { h.count(ctx); return next(ctx, cmd) }
}

// ProcessPipelineHook implements redis.Hook.
func (h tries) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { h.count(ctx); return next(ctx, cmds) }
}

// If a server, or the client's settings for it, are wrong, the error of Open says once what is wrong and
// what to do. Open does not retry if that is useless.
func TestOpenSaysWhatIsWrongWithTheServer(t *testing.T) {
	plain := redistest.Shared(t).Addr
	for _, row := range []struct {
		claim   string
		client  func(t *testing.T) redis.UniversalClient
		want    error
		answer  string // the reply of the server, once in the error
		cure    string
		retried bool // as temporary errors are, for five seconds
	}{
		{"a password is missing", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+set(t, "requirepass", "x").Addr)
		}, refusal.ErrNoAccess, "NOAUTH", "write redis://user:password@", false},
		{"the password is wrong", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://:y@"+set(t, "requirepass", "x").Addr)
		}, refusal.ErrNoAccess, "WRONGPASS", "the password is wrong", false},
		{"the user does not exist", func(t *testing.T) redis.UniversalClient { return connect(t, "redis://nobody:y@"+plain) },
			refusal.ErrNoAccess, "WRONGPASS", "the user or the password is wrong", false},
		{"protected mode", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+saying(t, "-DENIED Redis is running in protected mode because"))
		}, refusal.ErrNoAccess, "DENIED", "protected-mode no", false},
		{"the database does not exist", func(t *testing.T) redis.UniversalClient { return connect(t, "redis://"+plain+"/99") },
			refusal.ErrMismatch, "DB index", "name a database that it has", false},
		{"a database number on a cluster", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+redistest.Start(t, "--cluster-enabled", "yes").Addr+"/2")
		}, refusal.ErrMismatch, "SELECT", "a cluster has no databases", false},
		{"a cluster client on a single server", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis+cluster://"+plain)
		}, refusal.ErrMismatch, "cluster support disabled", "it is not a cluster: write redis://", false},
		{"a client for one server on a node of a cluster", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+nodeWithoutSlots(t))
		}, refusal.ErrMismatch, "MOVED", "write redis+cluster://", false},
		{"a sentinel client on a Redis server", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis+sentinel://"+plain+"/master")
		}, refusal.ErrMismatch, "unknown command", "not a sentinel", false},
		{"a web server", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+saying(t, "HTTP/1.1 400 Bad Request"))
		}, refusal.ErrMismatch, "HTTP/1.1 400", "not a Redis: check host and port", false},
		{"TLS on a server without TLS", func(t *testing.T) redis.UniversalClient { return connect(t, "rediss://"+plain) },
			refusal.ErrMismatch, "", "write redis://, not rediss://", true},
		{"no TLS on a server with TLS", func(t *testing.T) redis.UniversalClient {
			addr, _ := secured(t, time.Now().Add(time.Hour))
			return connect(t, "redis://"+addr)
		}, refusal.ErrMismatch, "", "write rediss://, not redis://", false},
		{"an untrusted authority", func(t *testing.T) redis.UniversalClient {
			addr, _ := secured(t, time.Now().Add(time.Hour))
			return connect(t, "rediss://"+addr)
		}, refusal.ErrMismatch, "unknown authority", "give the client the authority", false},
		{"another authority", func(t *testing.T) redis.UniversalClient {
			addr, _ := secured(t, time.Now().Add(time.Hour))
			return trusting(t, addr, newAuthority(t))
		}, refusal.ErrMismatch, "unknown authority", "give the client the authority", false},
		{"an expired certificate", func(t *testing.T) redis.UniversalClient {
			addr, a := secured(t, time.Now().Add(-time.Minute))
			return trusting(t, addr, a)
		}, refusal.ErrMismatch, "expired", "or renew it", false},
		{"no client certificate", func(t *testing.T) redis.UniversalClient {
			addr, a := secured(t, time.Now().Add(time.Hour))
			return trusting(t, addr, a)
		}, refusal.ErrMismatch, "certificate required", "client certificate", false},
		{"an unknown host", func(t *testing.T) redis.UniversalClient { return connect(t, "redis://no-such-host.invalid:6379") },
			refusal.ErrUnavailable, "lookup", "check host and port", true},
		{"no server listens", func(t *testing.T) redis.UniversalClient { return connect(t, "redis://127.0.0.1:1") },
			refusal.ErrUnavailable, "connection refused", "check host and port, and whether it runs", true},
		{"the server does not reply", func(t *testing.T) redis.UniversalClient { return connect(t, "redis://"+mute(t)) },
			refusal.ErrUnavailable, "no answer in 5s", "", true},
		{"a server that loads its data", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+saying(t, "-LOADING Redis is loading the dataset in memory"))
		}, refusal.ErrUnavailable, "LOADING", "wait", true},
		{"a cluster without slots", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis+cluster://"+redistest.Start(t, "--cluster-enabled", "yes").Addr)
		}, refusal.ErrUnavailable, "", "see CLUSTER", true},
		{"a cluster's only node without slots", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+redistest.Start(t, "--cluster-enabled", "yes").Addr)
		}, refusal.ErrUnavailable, "CLUSTERDOWN", "see CLUSTER INFO", true},
		{"a replica without its master", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+replica(t, "127.0.0.1 1", "--replica-serve-stale-data", "no"))
		}, refusal.ErrUnavailable, "MASTERDOWN", "connect to the master", true},
		{"too many clients", func(t *testing.T) redis.UniversalClient {
			s := redistest.Start(t)
			s.Client(t).ConfigSet(t.Context(), "maxclients", "1")
			return connect(t, "redis://"+s.Addr)
		}, refusal.ErrUnavailable, "", "maxclients", true},
		{"a full disk", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+saying(t, "-MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk."))
		}, refusal.ErrUnavailable, "MISCONF", "its disk space", true},
		{"neither functions nor scripts", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+redistest.Start(t, "--rename-command", "FCALL", "", "--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "").Addr)
		}, refusal.ErrUnfit, "unknown command", "see rename-command", false},
		{"a replica", func(t *testing.T) redis.UniversalClient {
			return connect(t, "redis://"+replica(t, strings.Replace(plain, ":", " ", 1)))
		}, refusal.ErrUnfit, "", "connect to its master " + plain, false},
		{"a user without rights", func(t *testing.T) redis.UniversalClient {
			s := redistest.Start(t)
			s.Client(t).Do(t.Context(), "acl", "setuser", "u", "on", "nopass")
			return connect(t, "redis://u:x@"+s.Addr)
		}, refusal.ErrNoRight, "NOPERM", "ACL SETUSER u +fcall +function|load, or +eval +evalsha", false},
		{"a closed client", func(t *testing.T) redis.UniversalClient {
			rdb := connect(t, "redis://"+plain)
			rdb.Close()
			return rdb
		}, refusal.ErrClosed, "client is closed", "make another one", false},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			rdb := row.client(t)
			rdb.AddHook(tries{})
			ctx, n := counting(t.Context())
			_, err := queue.Open(ctx, rdb, queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler)})
			if made := n.Load(); !row.retried && made > 20 { // one that is retried for five seconds makes 25 or more
				t.Errorf("Open made %d commands: it was retried", made)
			}
			is(t, "Open", err, row.want)
			if row.answer != "" && strings.Count(err.Error(), row.answer) != 1 || !strings.Contains(err.Error(), row.cure) {
				t.Errorf("Open = %v, want %q in it once, and %q", err, row.answer, row.cure)
			}
		})
	}
}

// kinds are the kinds of errors of servers. An error has exactly one of them.
var kinds = []error{refusal.ErrNoAccess, refusal.ErrMismatch, refusal.ErrUnavailable, refusal.ErrUnfit, refusal.ErrNoRight, refusal.ErrClosed,
	refusal.ErrUnknown, refusal.ErrFull, refusal.ErrWrongType, refusal.ErrBroken}

// is checks that an error has one kind and no other.
func is(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s = %v, want %v", what, err, want)
	}
	for _, kind := range kinds {
		if kind != want && errors.Is(err, kind) {
			t.Errorf("%s = %v, which is also %v", what, err, kind)
		}
	}
}

// replica starts a replica of master, "host port", and returns its address.
func replica(t *testing.T, master string, args ...string) string {
	t.Helper()
	s := redistest.Start(t, args...)
	host, port, _ := strings.Cut(master, " ")
	if err := s.Client(t).Do(t.Context(), "replicaof", host, port).Err(); err != nil {
		t.Fatal(err)
	}
	return s.Addr
}

// mute returns the address of a server that accepts connections and never replies.
func mute(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return listener.Addr().String()
}

// nodeWithoutSlots starts a cluster of two nodes and returns the address of the one without slots.
func nodeWithoutSlots(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	a, b := redistest.Start(t, "--cluster-enabled", "yes"), redistest.Start(t, "--cluster-enabled", "yes")
	all, none := a.Client(t), b.Client(t)
	all.ClusterAddSlotsRange(ctx, 0, 16383)
	host, port, _ := net.SplitHostPort(b.Addr)
	if err := all.ClusterMeet(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the nodes know each other", func() bool {
		return strings.HasPrefix(none.Get(ctx, "x").String(), "get x: MOVED")
	})
	return b.Addr
}
