package embedded

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestKeysExpireByTheServersClock(t *testing.T) {
	s := start(t)
	rdb := s.Client()
	ctx := t.Context()
	at := time.UnixMilli(1_800_000_000_000)

	s.SetTime(at)
	if err := rdb.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	s.SetTime(at.Add(59 * time.Second))
	if got, err := rdb.Get(ctx, "k").Result(); got != "v" || err != nil {
		t.Errorf("after 59 s of 60: %q, %v, want v", got, err)
	}
	s.SetTime(at.Add(61 * time.Second))
	if _, err := rdb.Get(ctx, "k").Result(); err != redis.Nil {
		t.Errorf("after 61 s of 60: error %v, want redis: nil", err)
	}
}

func TestScriptsReadTheServersClock(t *testing.T) {
	s := start(t)
	rdb := s.Client()
	ask := func() int64 {
		t.Helper()
		seconds, err := rdb.Eval(t.Context(), `return tonumber(redis.call("TIME")[1])`, nil).Int64()
		if err != nil {
			t.Fatal(err)
		}
		return seconds
	}

	if got, now := ask(), time.Now().Unix(); got < now-5 || got > now+5 {
		t.Errorf("a new server's clock says %d, the machine's %d", got, now)
	}
	s.SetTime(time.Unix(1_800_000_000, 0))
	if got := ask(); got != 1_800_000_000 {
		t.Errorf("TIME after SetTime = %d, want 1800000000", got)
	}
	s.SetTime(time.Time{})
	if got, now := ask(), time.Now().Unix(); got < now-5 || got > now+5 {
		t.Errorf("the clock says %d after SetTime of zero, the machine's %d", got, now)
	}
}

func TestCloseEndsServerAndClients(t *testing.T) {
	s := start(t)
	rdb := s.Client()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := rdb.Ping(t.Context()).Err(); err != redis.ErrClosed {
		t.Errorf("PING by a client of a closed server: %v, want %v", err, redis.ErrClosed)
	}
	other := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer other.Close()
	if err := other.Ping(t.Context()).Err(); err == nil {
		t.Error("a closed server still replies")
	}
}

func TestKeysExpireWhileTheClockRuns(t *testing.T) {
	rdb := start(t).Client()
	if err := rdb.Set(t.Context(), "k", "v", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the key has expired", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
}

func TestAPortIsTakenOnce(t *testing.T) {
	var err error
	for range 5 { // another program can take a port before it is taken again
		if err = takeTwice(t); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// takeTwice takes a free port, and takes it again after it was given back. It returns an error if that fails.
func takeTwice(t *testing.T) error {
	t.Helper()
	s := start(t)
	_, text, _ := strings.Cut(s.Addr(), ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := StartOn(port); err == nil {
		other.Close()
		t.Fatal("two servers have one port")
	}
	s.Close()
	other, err := StartOn(port)
	if err != nil {
		return err
	}
	defer other.Close()
	if want := "127.0.0.1:" + text; other.Addr() != want {
		t.Errorf("Addr = %s, want %s", other.Addr(), want)
	}
	return nil
}
