package embedded

import (
	"context"
	"net"
	"sync"
)

// dial returns a connection in memory. No socket takes part, so it works in a bubble of testing/synctest, in which a
// goroutine that waits for a socket stops the time.
func (s *Server) dial(context.Context, string, string) (net.Conn, error) {
	client, end := net.Pipe()
	s.mini.Server().ServeConn(buffered(end))
	return client, nil
}

// buffer is the server's end of a pipe. A write does not wait for the reader, since a client sends the whole of a
// pipeline before it reads the first reply.
type buffer struct {
	net.Conn
	mu      sync.Mutex
	bytes   []byte // to write
	written chan struct{}
	closed  chan struct{}
	close   sync.Once
}

func buffered(conn net.Conn) *buffer {
	b := &buffer{Conn: conn, written: make(chan struct{}, 1), closed: make(chan struct{})}
	go b.send()
	return b
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	b.bytes = append(b.bytes, p...)
	b.mu.Unlock()
	select {
	case b.written <- struct{}{}:
	default: // send has not yet looked since the write before
	}
	return len(p), nil
}

// send writes the bytes until the connection is closed.
func (b *buffer) send() {
	for {
		select {
		case <-b.written:
		case <-b.closed:
			return
		}
		b.mu.Lock()
		bytes := b.bytes
		b.bytes = nil
		b.mu.Unlock()
		if _, err := b.Conn.Write(bytes); err != nil {
			b.Close() // ends the read of the server too
			return
		}
	}
}

func (b *buffer) Close() error {
	b.close.Do(func() { close(b.closed) })
	return b.Conn.Close()
}
