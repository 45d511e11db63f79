package embedded

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

func startWithoutPort(t *testing.T) *redis.Client {
	t.Helper()
	s, err := StartWithoutPort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.Client()
}

// A client writes all of a pipeline before it reads.
func TestALongPipelineNeedsNoPort(t *testing.T) {
	rdb := startWithoutPort(t)
	value := strings.Repeat("x", 10_000)
	pipe := rdb.Pipeline()
	for range 300 {
		pipe.Echo(t.Context(), value)
	}
	replies, err := pipe.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range replies {
		if got := r.(*redis.StringCmd).Val(); got != value {
			t.Fatalf("reply %d has %d bytes, want %d", i, len(got), len(value))
		}
	}
}

func TestTheTimeOfABubbleIsThatOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := startWithoutPort(t)
		if err := rdb.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Millisecond) // sleeps: the clock of synctest
		if got, err := rdb.Get(t.Context(), "k").Result(); got != "v" || err != nil {
			t.Errorf("1 ms before its end the key is %q, %v, want v", got, err)
		}
		time.Sleep(time.Millisecond) // sleeps: the clock of synctest
		if _, err := rdb.Get(t.Context(), "k").Result(); err != redis.Nil {
			t.Errorf("at its end the key gives the error %v, want redis: nil", err)
		}
		if now, err := rdb.Time(t.Context()).Result(); !now.Equal(time.Now()) || err != nil {
			t.Errorf("TIME = %v, %v, want %v", now, err, time.Now())
		}
	})
}

// What processes share, such as the look-up of names and pools of timers, must not be made in a bubble and used
// outside: that ends the process. Such things are made when a client begins, and when calls wait for a connection.
func TestCallsOutsideOfABubbleAfterIt(t *testing.T) {
	manyCalls := func(t *testing.T) {
		rdb := startWithoutPort(t)
		var calls sync.WaitGroup
		for range 300 {
			calls.Go(func() {
				if err := rdb.Ping(t.Context()).Err(); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	synctest.Test(t, manyCalls)
	manyCalls(t)
	if rdb := redis.NewClient(&redis.Options{Addr: "localhost:1", MaxRetries: -1}); rdb.Close() != nil {
		t.Error("a client of a host with a name does not close")
	}
}
