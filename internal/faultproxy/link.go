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

// link is a client's connection and the one to the server that belongs to it.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	sent           chan request // passed on and not yet answered
	lost           atomic.Bool  // something of it was swallowed
	once           sync.Once
	over           chan struct{}
}

// request is what the replies' side must know of one.
type request struct {
	hooks  []*Hook // that match it
	stream bool    // what comes after its answer answers nothing
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.over)
		l.client.Close()
		l.server.Close()
	})
}

// run runs one direction; when either ends, both do.
func (l *link) run(direction func()) {
	direction()
	l.close()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}

// write passes bytes on, or swallows them, and tells whether to go on. A connection
// that lost bytes is out of step for good: it is closed once the partition is healed,
// here if that is just happening.
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
		case l.sent <- r: // before the server can answer
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

// passOn passes requests on as they come.
func (l *link) passOn(from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !l.write(l.server, b[:n]) || err != nil {
			return
		}
	}
}

// streams tells whether a request turns its connection into a stream.
func streams(args [][]byte) bool {
	return len(args) > 0 && slices.Contains(
		[]string{"subscribe", "psubscribe", "ssubscribe", "monitor"},
		strings.ToLower(string(args[0])))
}

func (l *link) replies() {
	from := bufio.NewReaderSize(l.server, 64<<10)
	var asked *request // the oldest that is not answered
	for {
		raw, err := readFrame(from, nil)
		if err != nil {
			return
		}
		if asked == nil {
			select {
			case r := <-l.sent:
				asked = &r
			default: // nobody asked: a push, a message, or the server's farewell
			}
		}
		// A push answers nothing, but for the one that confirms a subscription.
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

// meet does to a reply what was ordered, and tells whether to pass it on.
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
