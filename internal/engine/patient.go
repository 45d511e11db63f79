package engine

import (
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// A deadline of go-redis is the time by which a whole request or reply must have been transferred. On a
// slow link a large one can never make that, and neither can its repeats. So a patient connection uses
// the deadline as the longest time without any transfer: each transfer begins it again.

const (
	// writeStep is the number of bytes to write before the deadline begins again.
	writeStep = 32 << 10
	// slowest is the number of bytes for which a reply gets the time of a small request once more. Written
	// bytes may not have arrived yet, since a kernel buffers megabytes.
	slowest = 256 << 10
)

// patientConn is a connection with such deadlines.
type patientConn struct {
	net.Conn
	writing, reading allowance
	sent             atomic.Int64 // bytes written since the last read
}

// allowance is a deadline and its length when it was set. Reads and writes have one each, since two
// goroutines may make them.
type allowance struct{ length, end atomic.Int64 }

func (a *allowance) set(d time.Duration, end time.Time) {
	a.length.Store(int64(d))
	a.end.Store(end.UnixNano())
}

// renewed returns a deadline that begins now. due is false if less than half of the current one is over.
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

// SetReadDeadline sets a deadline for reads. The reply to a large request gets more time, counted from
// now: the write may have taken longer than the deadline of the request.
func (c *patientConn) SetReadDeadline(t time.Time) error {
	if t.IsZero() {
		c.reading.set(0, t)
		return c.Conn.SetReadDeadline(t)
	}
	length := time.Until(t)
	if sent := c.sent.Load(); sent > writeStep {
		limit := time.Duration(c.writing.length.Load())
		length = max(length, limit)
		t = time.Now().Add(length + time.Duration(float64(limit)*float64(sent)/slowest))
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

// NetConn returns the connection inside. go-redis uses it to check whether there is something to read.
func (c *patientConn) NetConn() net.Conn { return c.Conn }

// patientSocket is a patientConn that lets go-redis check whether the socket is still open.
type patientSocket struct {
	*patientConn
	socket syscall.Conn
}

func (c patientSocket) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// patient makes a connection patient.
func patient(conn net.Conn) net.Conn {
	if socket, ok := conn.(syscall.Conn); ok {
		return patientSocket{&patientConn{Conn: conn}, socket}
	}
	return &patientConn{Conn: conn} // TLS
}
