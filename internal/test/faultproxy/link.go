package faultproxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// link is a client's connection and its connection to the server.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	sent           chan request // requests without a reply so far
	lost           atomic.Bool  // whether a partition has dropped bytes of it
	once           sync.Once
	over           chan struct{}
}

// request is what replies needs to know about a request.
type request struct {
	hooks  []*Hook // the hooks that match it
	stream bool    // whether its connection is a stream from then on
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.over)
		l.client.Close()
		l.server.Close()
	})
}

// run runs one direction. When one ends, it closes both.
func (l *link) run(direction func()) {
	direction()
	l.close()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}

// write forwards bytes, or drops them during a partition. It reports whether to continue. A
// connection that lost bytes cannot be used again, so it is closed when the partition is healed.
func (l *link) write(to net.Conn, b []byte) bool {
	if l.proxy.partitioned.Load() {
		l.lost.Store(true)
	}
	if l.lost.Load() {
		return l.proxy.partitioned.Load()
	}
	_, err := to.Write(b)
	return err == nil
}

func (l *link) requests() {
	from := bufio.NewReaderSize(l.client, 64<<10)
	for {
		raw, args, err := readRequest(from)
		if err != nil {
			return
		}
		if line := l.proxy.said.Load(); line != nil {
			if _, err := l.client.Write([]byte(*line + "\r\n")); err != nil {
				return
			}
			continue
		}
		r := request{stream: streams(args)}
		for _, h := range l.proxy.snapshot() {
			if !h.match(args) {
				continue
			}
			if h.kind == cutRequest && h.take() {
				return
			}
			r.hooks = append(r.hooks, h)
		}
		select {
		case l.sent <- r: // before the server can reply
		case <-l.over:
			return
		}
		if !l.write(l.server, raw) {
			return
		}
		if r.stream {
			l.passOn(from)
			return
		}
	}
}

// passOn forwards requests without parsing them.
func (l *link) passOn(from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !l.write(l.server, b[:n]) || err != nil {
			return
		}
	}
}

// streams reports whether a request turns its connection into a stream.
func streams(args [][]byte) bool {
	return len(args) > 0 && slices.Contains(
		[]string{"subscribe", "psubscribe", "ssubscribe", "monitor"},
		strings.ToLower(string(args[0])))
}

func (l *link) replies() {
	from := bufio.NewReaderSize(l.server, 64<<10)
	var asked *request // the oldest request without a reply
	for {
		raw, err := readFrame(from, nil)
		if err != nil {
			return
		}
		if asked == nil {
			select {
			case r := <-l.sent:
				asked = &r
			default: // no request: a push, a message, or an error before the server closes
			}
		}
		// A push is not a reply, except the one that confirms a subscription.
		answers := asked != nil && (raw[0] != '>' || asked.stream)
		if answers && !l.meet(asked.hooks, raw) {
			return
		}
		if !l.write(l.client, raw) {
			return
		}
		if answers {
			asked = nil
		}
	}
}

// meet applies the hooks to a reply, and reports whether to forward it.
func (l *link) meet(hooks []*Hook, reply []byte) bool {
	if bytes.HasPrefix(reply, []byte("-NOSCRIPT")) {
		return true
	}
	for _, h := range hooks {
		switch {
		case h.kind == cutRequest || !h.take():
		case h.kind == cutReply:
			return false
		case h.kind == hold:
			select {
			case <-h.done:
			case <-l.over:
				return false
			}
		}
	}
	return true
}
