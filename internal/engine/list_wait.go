package engine

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
)

const (
	// overrun is how late the reply to a blocking call can be before the connection counts as broken.
	overrun = 500 * time.Millisecond
	// unblockFor is how long to try to unblock a call.
	unblockFor = 500 * time.Millisecond
	// uninterrupted is the maximum time of a blocking call that cannot be unblocked.
	uninterrupted = time.Second
)

// ListWait waits for elements of lists in one partition, on a connection of its own. It is not safe for
// concurrent use.
type ListWait struct {
	e         *Engine
	partition int
	keys      []string
	conn      *blockingConn // nil before the first call, and after an error
}

// NewListWait returns a ListWait. It does not connect yet.
func (e *Engine) NewListWait(partition int, keys []string) *ListWait {
	return &ListWait{e: e, partition: partition, keys: keys}
}

// Pop waits up to d for an element of one of the lists, and removes it. A d below a second counts as a second. It
// reports whether the caller should poll now: it took an element, or another node has become the master of the
// partition. When ctx ends, Pop makes Redis unblock the call and returns the cause of ctx. Then the call
// takes no later element. Where CLIENT UNBLOCK is not available, as on the embedded server, the call can
// take one within the next second, and that element is lost. If Redis does not reply, Pop returns
// false and no error. So callers must poll from time to time anyway.
func (w *ListWait) Pop(ctx context.Context, d time.Duration) (bool, error) {
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if w.conn == nil {
		w.conn = newBlockingConn(w.e, w.partition)
	}
	d = max(d, uninterrupted)
	popped := make(chan error, 1)
	go func(conn *blockingConn) {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), d+overrun)
		defer cancel()
		popped <- conn.pop(call, d, w.keys)
	}(w.conn)
	late := time.NewTimer(d + 2*overrun) // a client may ignore the deadline of a context
	defer late.Stop()
	select {
	case err := <-popped:
		return w.popped(ctx, err)
	case <-late.C:
		w.abandon(popped)
		return false, nil
	case <-ctx.Done():
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), unblockFor)
	defer cancel()
	go w.conn.unblock(asking)
	select {
	case err := <-popped:
		return w.popped(ctx, err)
	case <-asking.Done():
		w.abandon(popped)
		return false, w.e.InVain(ctx)
	}
}

// popped turns the error of the call into the result of Pop.
func (w *ListWait) popped(ctx context.Context, err error) (bool, error) {
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, redis.Nil) {
		w.Close()
		w.e.Remap()
	}
	var cut net.Error
	switch cause := EndOf(ctx); {
	case cause != nil:
		return false, w.e.inVain(cause, nil) // instead of the timeout that the client returns
	case errors.Is(err, redis.Nil), errors.As(err, &cut) && cut.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return false, nil
	case redis.HasErrorPrefix(err, "UNBLOCKED"), w.e.cluster != nil && redis.HasErrorPrefix(err, "MOVED"):
		return true, nil // the partition has another master, which the caller's poll will find
	}
	return false, w.e.Explain(w.partition, err)
}

// abandon leaves a call without a reply behind, and closes its connection when the call has ended.
func (w *ListWait) abandon(popped <-chan error) {
	conn := w.conn
	w.conn = nil
	go func() {
		<-popped
		conn.close()
	}()
}

// Close closes the connection. Another Pop makes a new one.
func (w *ListWait) Close() {
	if w.conn != nil {
		w.conn.close()
		w.conn = nil
	}
}

// blockingConn is a connection whose blocking calls can be unblocked.
type blockingConn struct {
	rdb  redis.UniversalClient
	node *redis.Client // client of the server that has the partition; nil if the server is not known
	conn *redis.Conn   // connection to node
	id   atomic.Int64  // CLIENT ID of conn; 0 until it is known, -1 if calls cannot be unblocked
}

func newBlockingConn(e *Engine, partition int) *blockingConn {
	c := &blockingConn{rdb: e.rdb, node: e.node(partition)}
	if c.node == nil {
		c.id.Store(-1)
	} else {
		c.conn = c.node.Conn()
	}
	return c
}

func (c *blockingConn) pop(ctx context.Context, d time.Duration, keys []string) error {
	if c.id.Load() == 0 {
		id, err := c.conn.ClientID(ctx).Result()
		if err != nil && !lua.Raised(err) {
			return err
		}
		if err != nil {
			id = -1 // the server or the rights of the user do not allow CLIENT ID
		}
		c.id.Store(id)
	}
	switch {
	case c.conn == nil:
		return c.rdb.BLPop(ctx, uninterrupted, keys...).Err()
	case c.id.Load() < 0:
		d = uninterrupted
	}
	return c.conn.BLPop(ctx, d, keys...).Err()
}

// unblock makes Redis end the blocking call. The call may not have arrived yet, so unblock repeats until it
// has ended one.
func (c *blockingConn) unblock(ctx context.Context) {
	for ctx.Err() == nil && c.id.Load() >= 0 {
		if id := c.id.Load(); id > 0 {
			n, err := c.node.ClientUnblock(ctx, id).Result()
			if lua.Raised(err) {
				c.id.Store(-1) // from now on calls are short
			}
			if n == 1 || err != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (c *blockingConn) close() {
	if c.conn != nil {
		c.conn.Close()
	}
}
