package metrics

import (
	"context"
	"sync"
	"time"
)

// shared lets concurrent callers share one read of Redis. There is never more than one read under way.
type shared[T any] struct {
	read func(ctx context.Context) T
	keep func(took time.Duration) time.Duration // how long a value is used again, if its read took so long
	wait time.Duration                          // how long a read can take

	mu     sync.Mutex
	last   *reading[T]
	before *reading[T] // the one before the last, which has ended
}

// always returns how long a value is used again that is kept for the same time, however long its read took.
func always(keep time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return keep }
}

// reading is a read that has begun.
type reading[T any] struct {
	began time.Time
	done  chan struct{} // closed when the read has ended; then the fields below are set
	ended time.Time
	value T
}

// get returns a value that was read at most keep ago. It returns false if the read has taken longer than wait. A client can
// ignore the end of a context, so that such a read is still under way. Then further calls return false at once until it
// ends, and start no other read.
func (s *shared[T]) get() (value T, ok bool) {
	r := s.current()
	late := time.NewTimer(time.Until(r.began.Add(s.wait)))
	defer late.Stop()
	select {
	case <-r.done:
		return r.value, true
	case <-late.C:
	}
	select {
	case <-r.done: // a value that is kept is older than a read may take
		return r.value, true
	default:
		return value, false
	}
}

// newest waits for the read under way until an instant. If it has not ended by then, newest returns the value of the read before, and false if
// there was none.
func (s *shared[T]) newest(until time.Time) (value T, ok bool) {
	r := s.current()
	late := time.NewTimer(time.Until(until))
	defer late.Stop()
	select {
	case <-r.done:
		return r.value, true
	case <-late.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-r.done: // a value that is kept, if the instant has passed
		return r.value, true
	default:
	}
	if s.before == nil {
		return value, false
	}
	return s.before.value, true
}

// current returns the newest read. It starts one if the value of the last one is too old.
func (s *shared[T]) current() *reading[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil {
		select {
		case <-s.last.done:
			if time.Since(s.last.ended) <= s.keep(s.last.ended.Sub(s.last.began)) {
				return s.last
			}
		default:
			return s.last
		}
	}
	r := &reading[T]{began: time.Now(), done: make(chan struct{})}
	s.before, s.last = s.last, r
	go func() {
		defer close(r.done)
		ctx, cancel := context.WithTimeout(context.Background(), s.wait)
		defer cancel()
		r.value = s.read(ctx)
		r.ended = time.Now()
	}()
	return r
}
