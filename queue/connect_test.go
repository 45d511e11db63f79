package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const secret = "s3cret"

// silent holds that no form of an error tells the password.
func silent(t *testing.T, err error) {
	t.Helper()
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func TestConnectRefusesABadURLAndKeepsItsPassword(t *testing.T) {
	for claim, address := range map[string]string{
		"nothing":                        "",
		"a word":                         secret,
		"no scheme":                      "user:" + secret + "@localhost:6379",
		"another scheme":                 "http://user:" + secret + "@localhost:6379",
		"a scheme with a typing error":   "rediss:://user:" + secret + "@localhost:6379",
		"half a scheme":                  "://user:" + secret + "@localhost",
		"a port that is none":            "redis://user:" + secret + "@localhost:port",
		"a password with a slash":        "redis://user:" + secret + "/x@localhost:6379",
		"a password with a percent sign": "redis://user:" + secret + "%x@localhost:6379",
		"an address of half a bracket":   "redis://user:" + secret + "@[::1",
		"a database that is none":        "redis://user:" + secret + "@localhost:6379/" + secret,
		"two paths":                      "redis://user:" + secret + "@localhost:6379/0/1",
		"an option that is none":         "redis://user:" + secret + "@localhost:6379/0?" + secret + "=1",
		"an option of a wrong value":     "redis://user:" + secret + "@localhost:6379/0?pool_size=" + secret,
		"a space":                        "redis://user:" + secret + "@local host:6379",
		"a line's end":                   "redis://user:" + secret + "@localhost\r\n:6379",
		"a NUL":                          "redis://user:" + secret + "@localhost\x00:6379",
		"a socket of no path":            "unix://user:" + secret + "@",
	} {
		t.Run(claim, func(t *testing.T) {
			rdb, err := queue.Connect(address)
			if err == nil {
				rdb.Close()
			}
			if !errors.Is(err, queue.ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", err)
			}
			if !strings.Contains(err.Error(), "Redis URL") || !strings.Contains(err.Error(), "redis://") {
				t.Errorf("the error %q must name the URL and say how one looks", err)
			}
			silent(t, err)
		})
	}
}

// locked is a server that asks for a password.
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
		enqueue(t, open(t, rdb, queue.Config{}), queue.Task{})
	}
}

// A password is no secret of the URL's alone: nor may what Redis answers tell it.
func TestOpenKeepsThePassword(t *testing.T) {
	server := locked(t, "another")
	for claim, address := range map[string]string{
		"a wrong password": "redis://:" + secret + "@" + server.Addr,
		"nobody there":     "redis://:" + secret + "@127.0.0.1:1",
		"a wrong user":     "redis://" + secret + ":" + secret + "@" + server.Addr,
	} {
		rdb, err := queue.Connect(address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = queue.Open(context.Background(), rdb, queue.Config{})
		if !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("%s: error %v, want ErrUnavailable", claim, err)
		}
		silent(t, err)
		rdb.Close()
	}
}
