package httpapi

import (
	"errors"
	"io"
	"math"
	"net/http"
	"sync"
	"time"
)

// enter takes a place among the requests that are under way.
func (s *Server) enter(waits bool) (leave func(), f *failure) {
	places, noun := s.requests, "requests"
	if waits {
		places, noun = s.waiting, "requests that wait"
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	default:
		return nil, fail(http.StatusServiceUnavailable, "busy", "the server has as many %s as it can have: make the request again later", noun).retry(time.Second)
	}
}

// rates limits how many requests a second each client makes: a token bucket for each.
type rates struct {
	rate, burst float64
	mu          sync.Mutex
	buckets     map[string]bucket
	pruned      time.Time // when full buckets were last removed
}

type bucket struct {
	tokens float64
	at     time.Time
}

// mostBuckets bounds the memory. With so many clients, full buckets are removed. If none is full, new clients share a bucket.
const mostBuckets = 10_000

// newClients is the bucket that new clients share.
const newClients = ""

func newRates(rate, burst int) *rates {
	return &rates{rate: float64(rate), burst: float64(burst), buckets: map[string]bucket{}}
}

// take takes a token of a client. The failure has the time until the next one.
func (r *rates) take(client string) *failure {
	if r.rate == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	b, ok := r.buckets[client]
	if !ok && len(r.buckets) >= mostBuckets && !r.prune(now) {
		client = newClients
		b, ok = r.buckets[client]
	}
	if !ok {
		b = bucket{r.burst, now}
	}
	b.tokens, b.at = r.refilled(b, now), now
	if b.tokens < 1 {
		r.buckets[client] = b
		rest := time.Duration((1 - b.tokens) / r.rate * float64(time.Second))
		return fail(http.StatusTooManyRequests, "too_many", "this client makes more than %v requests a second: wait, and make the request again", r.rate).retry(rest)
	}
	b.tokens--
	r.buckets[client] = b
	return nil
}

func (r *rates) refilled(b bucket, now time.Time) float64 {
	return math.Min(r.burst, b.tokens+now.Sub(b.at).Seconds()*r.rate)
}

// prune removes the buckets that are full, at most once a second, and reports whether there is room for another one.
func (r *rates) prune(now time.Time) bool {
	if now.Sub(r.pruned) < time.Second {
		return false
	}
	r.pruned = now
	for client, b := range r.buckets {
		if r.refilled(b, now) == r.burst {
			delete(r.buckets, client)
		}
	}
	return len(r.buckets) < mostBuckets
}

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
