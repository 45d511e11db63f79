package httpapi

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// slowConn delays each write.
type slowConn struct {
	net.Conn
	delay time.Duration
}

func (c slowConn) Write(b []byte) (int, error) {
	time.Sleep(c.delay) // sleeps: a slow network
	return c.Conn.Write(b)
}

// Many requests wait for one connection for longer than Config.Silence. Redis replies all the time, so none of them ends with 503,
// whether they read with calls or with pipelines.
func TestRequestsThatWaitForAConnectionAreAnswered(t *testing.T) {
	const delay, silence, requests = 100 * time.Millisecond, 600 * time.Millisecond, 12
	for _, path := range []string{"kinds", "queues", "tasks"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, PoolSize: 1, PoolTimeout: time.Minute,
				Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := new(net.Dialer).DialContext(ctx, network, addr)
					return slowConn{c, delay}, err
				}})
			t.Cleanup(func() { rdb.Close() })
			s := newStageOn(t, rdb, "shop", Config{Silence: silence})
			s.enqueue("k", "default")
			var group sync.WaitGroup
			for range requests {
				group.Go(func() {
					if a := s.do("GET", path, ""); a.status != 200 {
						t.Errorf("GET %s: %d %s", path, a.status, a.body)
					}
				})
			}
			group.Wait()
		})
	}
}
