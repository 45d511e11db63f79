package engine

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// On a busy machine go-redis may not return the error of a refused connection before reach gives up. The error still says it.
func TestARefusedConnectionIsReportedByASlowClient(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if end, limited := ctx.Deadline(); !limited || time.Until(end) > lookFor {
			<-ctx.Done() // a dial of go-redis
			return nil, ctx.Err()
		}
		return nil, refused
	}})
	defer rdb.Close()
	e := &Engine{rdb: rdb, logger: slog.New(slog.DiscardHandler)}
	if err := e.reach(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "check host and port") {
		t.Errorf("reach = %v, want that the connection is refused", err)
	}
}
