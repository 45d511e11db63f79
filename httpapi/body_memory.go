package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// bodyMemory bounds the memory that the bodies of all requests have. A body takes memory as it arrives, and no place of a request: many
// bodies that come slowly keep nobody waiting. Each client can have an eighth of the memory.
type bodyMemory struct {
	one, share, most int64 // the largest body, of a client, of all

	mu    sync.Mutex
	taken int64
	of    map[string]int64 // by client
}

func newBodyMemory(largest int64, requests int) *bodyMemory {
	b := &bodyMemory{one: largest + 1, of: map[string]int64{}} // a byte more, so that the end is seen without another buffer
	b.most = b.one * int64(requests)
	b.share = max(b.most/8, b.one)
	return b
}

// firstPart is the memory with which a body begins.
const firstPart = 512

// read reads a body to its end. The client gives its memory back with free.
func (b *bodyMemory) read(client string, from io.Reader) (text []byte, err error) {
	for {
		if len(text) == cap(text) {
			size := min(max(2*int64(cap(text)), firstPart), b.one)
			if f := b.take(client, size-int64(cap(text))); f != nil {
				return text, f
			}
			text = append(make([]byte, 0, size), text...)
		}
		n, err := from.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return text, err
		}
	}
}

// take takes memory for a client.
func (b *bodyMemory) take(client string, size int64) *failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.of[client]+size > b.share:
		return fail(http.StatusTooManyRequests, "too_many", "the bodies that this client sends at the same time have more than %d bytes: send fewer at once", b.share).retry(time.Second)
	case b.taken+size > b.most:
		return fail(http.StatusServiceUnavailable, "busy", "the bodies of all requests have more than %d bytes: make the request again later", b.most).retry(time.Second)
	}
	b.taken += size
	b.of[client] += size
	return nil
}

// free gives back the memory of a body that read has returned.
func (b *bodyMemory) free(client string, text []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= int64(cap(text))
	if b.of[client] -= int64(cap(text)); b.of[client] == 0 {
		delete(b.of, client)
	}
}
