package bench

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartRedis starts a redis-server for a measurement, without persistence, on a
// free loopback port, and returns a client and what stops it.
func StartRedis(ctx context.Context) (rdb *redis.Client, stop func(), err error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, nil, fmt.Errorf("there is no redis-server to measure on: run `make redis`, or name one with --redis")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	dir, err := os.MkdirTemp("", "curfew-bench")
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(path, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err := cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	rdb = redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + strconv.Itoa(port), ContextTimeoutEnabled: true})
	stop = func() {
		rdb.Close()
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		if rdb.Ping(ctx).Err() == nil {
			return rdb, stop, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			stop()
			return nil, nil, fmt.Errorf("redis-server did not answer on port %d within 5 s", port)
		}
		pause(ctx, 10*time.Millisecond)
	}
}
