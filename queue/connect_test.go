package queue_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const secret = "s3cret"

// silent checks that neither an error nor one that it wraps contains the password.
func silent(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error contains the password: %v", err)
		}
	}
}

func TestConnectRefusesABadURLAndKeepsItsPassword(t *testing.T) {
	for claim, address := range map[string]string{
		"nothing":                        "",
		"a word":                         secret,
		"no scheme":                      "user:" + secret + "@localhost:6379",
		"another scheme":                 "http://user:" + secret + "@localhost:6379",
		"a misspelled scheme":            "rediss:://user:" + secret + "@localhost:6379",
		"half a scheme":                  "://user:" + secret + "@localhost",
		"a port that is not a number":    "redis://user:" + secret + "@localhost:port",
		"a password with a slash":        "redis://user:" + secret + "/x@localhost:6379",
		"a password with a percent sign": "redis://user:" + secret + "%x@localhost:6379",
		"an address of half a bracket":   "redis://user:" + secret + "@[::1",
		"a database that is a word":      "redis://user:" + secret + "@localhost:6379/" + secret,
		"two paths":                      "redis://user:" + secret + "@localhost:6379/0/1",
		"an unknown option":              "redis://user:" + secret + "@localhost:6379/0?" + secret + "=1",
		"an option with a wrong value":   "redis://user:" + secret + "@localhost:6379/0?pool_size=" + secret,
		"a space":                        "redis://user:" + secret + "@local host:6379",
		"a line break":                   "redis://user:" + secret + "@localhost\r\n:6379",
		"a NUL":                          "redis://user:" + secret + "@localhost\x00:6379",
		"a socket without a path":        "unix://user:" + secret + "@",
		"two servers that are no group":  "redis://user:" + secret + "@one:6379,two:6379",
		"another group":                  "redis+ring://user:" + secret + "@one:6379,two:6379",
		"a group without a name":         "redis+://user:" + secret + "@one:6379",
		"a cluster without a host":       "redis+cluster://user:" + secret + "@",
		"a cluster with a host missing":  "redis+cluster://user:" + secret + "@one:6379,,two:6379",
		"a cluster with a bad port":      "redis+cluster://user:" + secret + "@one:6379,two:" + secret,
		"a cluster with a bad password":  "redis+cluster://user:" + secret + "%x@one:6379,two:6379",
		"a password with a comma":        "redis+cluster://user:" + secret + "," + secret + "/x@one:6379",
		"a cluster's database":           "redis+cluster://user:" + secret + "@one:6379,two:6379/2",
		"a cluster's path":               "redis+cluster://user:" + secret + "@one:6379,two:6379/" + secret,
		"a cluster's unknown option":     "redis+cluster://user:" + secret + "@one:6379?" + secret + "=1",
		"a cluster's option as a word":   "redis+cluster://user:" + secret + "@one:6379?pool_size=" + secret,
		"sentinels without a master":     "redis+sentinel://user:" + secret + "@one:26379,two:26379",
		"sentinels of an empty master":   "redis+sentinel://user:" + secret + "@one:26379,two:26379//",
		"sentinels of a wrong database":  "redis+sentinel://user:" + secret + "@one:26379,two:26379/master/" + secret,
		"sentinels of a longer path":     "redis+sentinel://user:" + secret + "@one:26379,two:26379/master/0/1",
		"sentinels' unknown option":      "redis+sentinel://user:" + secret + "@one:26379/master?" + secret + "=1",
		"sentinels without a host":       "redis+sentinel://user:" + secret + "@/master",
	} {
		t.Run(claim, func(t *testing.T) {
			rdb, err := queue.Connect(address)
			if err == nil {
				rdb.Close()
			}
			if !errors.Is(err, refusal.ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", err)
			}
			if !strings.Contains(err.Error(), "Redis URL") || !strings.Contains(err.Error(), "://") {
				t.Errorf("the error %q must name the URL and show the form of one", err)
			}
			silent(t, err)
		})
	}
}

// locked starts a server that requires a password.
func locked(t *testing.T, password string) *redistest.Server {
	t.Helper()
	server := redistest.Start(t)
	if err := server.Client(t).ConfigSet(context.Background(), "requirepass", password).Err(); err != nil {
		t.Fatal(err)
	}
	return server
}

func TestConnectTakesAGoodURL(t *testing.T) {
	server := locked(t, secret+"/%")
	for _, address := range []string{
		"redis://:" + secret + "%2F%25@" + server.Addr, "redis://default:" + secret + "%2F%25@" + server.Addr + "/2?pool_size=3",
	} {
		rdb, err := queue.Connect(address)
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		queuetest.Enqueue(t, queuetest.Open(t, rdb, queue.Config{}), queue.Task{})
	}
}

// An error that comes from Redis must not contain the password either.
func TestOpenKeepsThePassword(t *testing.T) {
	server := locked(t, "another")
	for claim, row := range map[string]struct {
		address string
		want    error
	}{
		"a wrong password": {"redis://:" + secret + "@" + server.Addr, refusal.ErrNoAccess},
		"no server":        {"redis://:" + secret + "@127.0.0.1:1", refusal.ErrUnavailable},
		"a wrong user":     {"redis://" + secret + ":" + secret + "@" + server.Addr, refusal.ErrNoAccess},
	} {
		rdb, err := queue.Connect(row.address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = queue.Open(context.Background(), rdb, queue.Config{})
		if !errors.Is(err, row.want) {
			t.Errorf("%s: error %v, want %v", claim, err, row.want)
		}
		silent(t, err)
		rdb.Close()
	}
}

func TestConnectNamesAllNodesOfACluster(t *testing.T) {
	rdb, err := queue.Connect("rediss+cluster://user:s%2F%2Cc@one,two:7000,[::1]:7001?pool_size=7&dial_timeout=9s")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	o := rdb.(*redis.ClusterClient).Options()
	if want := []string{"one:6379", "two:7000", "[::1]:7001"}; !slices.Equal(o.Addrs, want) {
		t.Errorf("its nodes are %q, want %q", o.Addrs, want)
	}
	if o.Username != "user" || o.Password != "s/,c" || o.TLSConfig == nil || o.PoolSize != 7 || o.DialTimeout != 9*time.Second {
		t.Errorf("%q, %q, TLS %v, pool %d, dial %v", o.Username, o.Password, o.TLSConfig, o.PoolSize, o.DialTimeout)
	}
	if !o.ContextTimeoutEnabled || o.ClusterStateReloadInterval != time.Second || o.DialerRetries != 1 {
		t.Errorf("the defaults are not set: %v, %v, %d", o.ContextTimeoutEnabled, o.ClusterStateReloadInterval, o.DialerRetries)
	}
}

func TestConnectKeepsThePasswordsOfRedisAndOfSentinelsApart(t *testing.T) {
	for query, want := range map[string]string{
		"":                                       "",
		"?sentinel_password=theirs":              "theirs",
		"?sentinel_password=theirs&pool_size=50": "theirs",
		"?sentinel_username=guard&sentinel_password=theirs&db=3": "guard theirs",
	} {
		sentinel, received := listens(t)
		rdb, err := queue.Connect("redis+sentinel://user:" + secret + "@" + sentinel + "," + sentinel + "/master/3" + query)
		if err != nil {
			t.Fatal(err)
		}
		o := rdb.(*redis.Client).Options()
		if o.Username != "user" || o.Password != secret || o.DB != 3 || !o.ContextTimeoutEnabled || o.DialerRetries != 1 {
			t.Errorf("the options for Redis are %q, %q, database %d, %v, %d", o.Username, o.Password, o.DB, o.ContextTimeoutEnabled, o.DialerRetries)
		}
		if err := rdb.Ping(t.Context()).Err(); err == nil {
			t.Error("PING succeeded, though no sentinel knows a master")
		}
		rdb.Close()
		text := received()
		if strings.Contains(text, secret) || text == "" || want == "" && strings.Contains(strings.ToLower(text), "auth") {
			t.Errorf("%s: the sentinels received %q", query, text)
		}
		for word := range strings.FieldsSeq(want) {
			if !strings.Contains(text, word) {
				t.Errorf("%s: the sentinels received %q, without %q", query, text, word)
			}
		}
	}
}

// listens starts a server that answers every command with an error. received returns what was sent to it.
func listens(t *testing.T) (addr string, received func() string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var mu sync.Mutex
	var heard strings.Builder
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for buf := make([]byte, 4096); ; {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					mu.Lock()
					heard.Write(buf[:n])
					mu.Unlock()
					conn.Write([]byte("-ERR no\r\n"))
				}
			}()
		}
	}()
	return listener.Addr().String(), func() string {
		mu.Lock()
		defer mu.Unlock()
		return heard.String()
	}
}

func TestConnectNamesTheOptionThatCannotBeRead(t *testing.T) {
	for address, want := range map[string]string{
		"redis://h/0?pool_size=" + secret:                     "a value for pool_size that is not a number",
		"redis://h/0?dial_timeout=" + secret:                  "a value for dial_timeout that is not a duration",
		"redis://h/" + secret:                                 "a value for database that is not a number",
		"unix:///s?pool_fifo=" + secret:                       "a value for pool_fifo that is not a boolean",
		"redis+cluster://h,i?pool_size=" + secret:             "a value for pool_size that is not a number",
		"redis+sentinel://h/master?read_timeout=" + secret:    "a value for read_timeout that is not a duration",
		"redis+sentinel://h/master/0?" + secret + "=1&db=one": "a value for database that is not a number",
		"redis://h/0?" + secret + "=1":                        "has an unknown part or option",
	} {
		_, err := queue.Connect(address)
		if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", address, err, want)
		}
		silent(t, err)
	}
}
