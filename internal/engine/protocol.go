package engine

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/refusal"
)

// A TLS server closes a connection without TLS, and a server without TLS never replies to a TLS
// handshake. Both look like a server that is not running. So the engine tries the other protocol once.

// lookFor is how long a server may take to show why it cannot be used.
const lookFor = 2 * time.Second

// otherProtocol returns an error if the client uses TLS and the server does not, or the reverse. It returns
// nil if they agree, or if it cannot find out.
func (e *Engine) otherProtocol(ctx context.Context, err error) error {
	network, addr, secure := "tcp", "", false
	switch rdb := e.rdb.(type) {
	case *redis.Client:
		o := rdb.Options()
		network, addr, secure = o.Network, o.Addr, o.TLSConfig != nil
	case *redis.ClusterClient:
		if o := rdb.Options(); len(o.Addrs) > 0 {
			addr, secure = o.Addrs[0], o.TLSConfig != nil
		}
	}
	if network != "tcp" || !strings.Contains(addr, ":") { // a sentinel client has no address
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	switch {
	case secure && speaksPlain(ctx, addr):
		return trouble{kind: refusal.ErrMismatch, cure: "the server speaks no TLS: write redis://, not rediss://"}.explain(err)
	case !secure && speaksTLS(ctx, addr):
		return trouble{kind: refusal.ErrMismatch, cure: "the server speaks TLS only: write rediss://, not redis://"}.explain(err)
	}
	return nil
}

func speaksPlain(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	if at, bounded := ctx.Deadline(); bounded {
		conn.SetDeadline(at)
	}
	answer := make([]byte, 1)
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	_, err = conn.Read(answer)
	return err == nil && (answer[0] == '+' || answer[0] == '-')
}

func speaksTLS(ctx context.Context, addr string) bool {
	// No data is sent or trusted: the handshake only shows whether the server has TLS.
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
