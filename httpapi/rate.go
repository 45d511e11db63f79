package httpapi

import (
	"math"
	"net/http"
	"sync"
	"time"
)

// rates limits how many requests a second each client makes: a token bucket for each.
type rates struct {
	rate, burst float64
	mu          sync.Mutex
	buckets     map[string]bucket
	forgot      time.Time // when full buckets were last forgotten
}

type bucket struct {
	tokens float64
	at     time.Time
}

// mostBuckets bounds the memory. With so many clients, those whose bucket is full are forgotten. If none is, new clients share a bucket.
const mostBuckets = 10_000

// newcomers is the bucket that new clients share.
const newcomers = ""

func newRates(rate, burst int) *rates {
	return &rates{rate: float64(rate), burst: float64(burst), buckets: map[string]bucket{}}
}

// take takes a token of a client, or says when there will be one.
func (r *rates) take(client string) *failure {
	if r.rate == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	b, known := r.buckets[client]
	if !known && len(r.buckets) >= mostBuckets && !r.forget(now) {
		client = newcomers
		b, known = r.buckets[client]
	}
	if !known {
		b = bucket{r.burst, now}
	}
	b.tokens, b.at = r.filled(b, now), now
	if b.tokens < 1 {
		r.buckets[client] = b
		rest := time.Duration((1 - b.tokens) / r.rate * float64(time.Second))
		return fail(http.StatusTooManyRequests, "too_many", "this client makes more than %v requests a second: wait, and make the request again", r.rate).retry(rest)
	}
	b.tokens--
	r.buckets[client] = b
	return nil
}

func (r *rates) filled(b bucket, now time.Time) float64 {
	return math.Min(r.burst, b.tokens+now.Sub(b.at).Seconds()*r.rate)
}

// forget forgets the clients whose bucket is full, once in a second, and reports whether there is a place for another one.
func (r *rates) forget(now time.Time) bool {
	if now.Sub(r.forgot) < time.Second {
		return false
	}
	r.forgot = now
	for client, b := range r.buckets {
		if r.filled(b, now) == r.burst {
			delete(r.buckets, client)
		}
	}
	return len(r.buckets) < mostBuckets
}
