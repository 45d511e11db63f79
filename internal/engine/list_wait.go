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
	// overrun is how much longer than it was told Redis may block, before the connection
	// counts as broken.
	overrun = 500 * time.Millisecond
	// unblockFor bounds how long Redis is asked to end a call that blocks.
	unblockFor = 500 * time.Millisecond
	// uninterrupted is the longest that a call blocks which cannot be ended.
	uninterrupted = time.Second
)

// ListWait waits for elements of lists in one partition, on a connection that it keeps.
// One goroutine at a time may use it.
type ListWait struct {
	e         *Engine
	partition int
	keys      []string
	conn      *blockingConn // nil before the first call, and after an error
}

// NewListWait makes one. It does not connect yet.
func (e *Engine) NewListWait(partition int, keys []string) *ListWait {
	return &ListWait{e: e, partition: partition, keys: keys}
}

// Pop waits up to d, a second at the least, for the first element of one of the lists, and
// tells whether it took one. When ctx ends, Redis is asked to end the call, so that no
// element is lost. If there is no answer, it returns false and no error: callers must poll
// from time to time anyway.
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
		return false, context.Cause(ctx)
	}
}

// popped reads the answer to a call.
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
		return false, cause // the client calls it a read that timed out
	case errors.Is(err, redis.Nil), errors.As(err, &cut) && cut.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return false, nil
	case redis.HasErrorPrefix(err, "UNBLOCKED"), w.e.cluster != nil && redis.HasErrorPrefix(err, "MOVED"):
		return true, nil // the partition has another master: who looks finds it
	}
	return false, w.e.Explain(w.partition, err)
}

// abandon leaves a call behind. It ends with its connection.
func (w *ListWait) abandon(popped <-chan error) {
	conn := w.conn
	w.conn = nil
	go func() {
		<-popped
		conn.close()
	}()
}

// Close gives the connection back.
func (w *ListWait) Close() {
	if w.conn != nil {
		w.conn.close()
		w.conn = nil
	}
}

// blockingConn is a connection whose calls Redis can be asked to end.
type blockingConn struct {
	rdb  redis.UniversalClient
	node *redis.Client // that has the partition; nil for a client of a kind that we do not know
	conn *redis.Conn   // of node
	id   atomic.Int64  // of conn; 0 until it is known, -1 if calls cannot be ended
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
			id = -1 // the server does not tell, or the user may not ask
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

// unblock has Redis end the call under way. It may not block yet, so Redis is asked until it did.
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
