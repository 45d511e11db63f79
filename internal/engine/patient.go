package engine

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// A deadline of go-redis says when a whole request or reply must have passed. A large one on
// a slow link never would, and its repeats would not either. So on connections of ours a
// deadline says how long nothing may pass: each byte that does begins it anew.

const (
	// writeStep is how much is written before the deadline begins anew.
	writeStep = 32 << 10
	// slowest is how many bytes an answer may wait for within the time that a small request
	// is given. What was written may still be on its way: a kernel takes in megabytes.
	slowest = 256 << 10
)

// patientConn is a connection with such deadlines.
type patientConn struct {
	net.Conn
	writing, reading allowance
	sent             atomic.Int64 // bytes written that no answer has followed
}

// allowance is a deadline, and how long it was when it was set. Reading and writing have one
// each, and may be done by two goroutines.
type allowance struct{ length, end atomic.Int64 }

func (a *allowance) set(d time.Duration, end time.Time) {
	a.length.Store(int64(d))
	a.end.Store(end.UnixNano())
}

// renewed is the deadline that begins now, if half of the last one is over.
func (a *allowance) renewed() (end time.Time, due bool) {
	length := a.length.Load()
	if length <= 0 {
		return end, false
	}
	now := time.Now()
	if a.end.Load()-now.UnixNano() > length/2 {
		return end, false
	}
	end = now.Add(time.Duration(length))
	a.end.Store(end.UnixNano())
	return end, true
}

func (c *patientConn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

func (c *patientConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.writing.set(0, t)
	} else {
		c.writing.set(time.Until(t), t)
	}
	return c.Conn.SetWriteDeadline(t)
}

// SetReadDeadline gives the answer to a large request more time. Behind a long write the
// deadline of the request is over before its answer is waited for: it begins anew.
func (c *patientConn) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		c.reading.set(0, t)
		return c.Conn.SetReadDeadline(t)
	}
	length := time.Until(t)
	if sent := c.sent.Load(); sent > writeStep {
		given := time.Duration(c.writing.length.Load())
		length = max(length, given)
		t = time.Now().Add(length + given*time.Duration(sent)/slowest)
	}
	c.reading.set(length, t)
	return c.Conn.SetReadDeadline(t)
}

func (c *patientConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.sent.Store(0)
		if end, due := c.reading.renewed(); due {
			c.Conn.SetReadDeadline(end)
		}
	}
	return n, err
}

func (c *patientConn) Write(p []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(p[written:min(written+writeStep, len(p))])
		written += n
		c.sent.Add(int64(n))
		if err != nil || written == len(p) {
			return written, err
		}
		if end, due := c.writing.renewed(); due {
			c.Conn.SetWriteDeadline(end)
		}
	}
}

// NetConn is for go-redis, which asks the socket whether there is something to read.
func (c *patientConn) NetConn() net.Conn { return c.Conn }

// patientSocket is one whose socket go-redis may ask whether it is still open.
type patientSocket struct {
	*patientConn
	socket syscall.Conn
}

func (c patientSocket) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// patientDials has the connections that a client makes be patient.
type patientDials struct{}

func (patientDials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return conn, err
		}
		if socket, ok := conn.(syscall.Conn); ok {
			return patientSocket{&patientConn{Conn: conn}, socket}, nil
		}
		return &patientConn{Conn: conn}, nil // TLS
	}
}

func (patientDials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (patientDials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// bePatient gives a client patient connections, from the next one on that it makes. A
// program may open many namespaces with one client. A cluster's client has none: with them a
// master that hangs is left half a second later (docs/decisions/0024-patient-connections.md).
func bePatient(rdb redis.UniversalClient) {
	if client, single := rdb.(*redis.Client); single && first(client) {
		client.AddHook(patientDials{})
	}
}

var seen sync.Map // weak pointers to clients

// first tells whether this is the first time that a client is seen.
func first(client *redis.Client) bool {
	pointer := weak.Make(client)
	if _, known := seen.LoadOrStore(pointer, true); known {
		return false
	}
	runtime.AddCleanup(client, func(gone weak.Pointer[redis.Client]) { seen.Delete(gone) }, pointer)
	return true
}
