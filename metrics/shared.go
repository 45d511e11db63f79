package metrics

import (
	"context"
	"sync"
	"time"
)

// shared lets concurrent callers share one read of Redis. No more than one read is under way.
type shared[T any] struct {
	read func(ctx context.Context) T
	keep func(took time.Duration) time.Duration // the time for which a value is used again, from the time that its read took
	wait time.Duration                          // the limit of a read

	mu       sync.Mutex
	last     *reading[T]
	previous *reading[T] // the read before the last, which has ended
}

// always returns a keep function that ignores the time of the read.
func always(keep time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return keep }
}

// reading is a read that has begun, and its result.
type reading[T any] struct {
	start time.Time
	done  chan struct{} // closed when the read has ended; then the fields below are set
	end   time.Time
	value T
}

// get returns a value that was read at most keep ago. If the read takes longer than wait, get
// returns false. Such a read can still be under way, because a client can ignore the end of a
// context. Until it ends, further calls return false at once and start no other read.
func (s *shared[T]) get() (value T, ok bool) {
	r := s.current()
	late := time.NewTimer(time.Until(r.start.Add(s.wait)))
	defer late.Stop()
	select {
	case <-r.done:
		return r.value, true
	case <-late.C:
	}
	select {
	case <-r.done: // a kept value is older than wait, so the timer fires at once
		return r.value, true
	default:
		return value, false
	}
}

// newest waits until an instant for the read under way. If the read has not ended by then, newest
// returns the value of the previous read, or false if there was none.
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
	case <-r.done: // a kept value, if the instant has passed already
		return r.value, true
	default:
	}
	if s.previous == nil {
		return value, false
	}
	return s.previous.value, true
}

// current returns the newest read. If its value is too old, current starts another read.
func (s *shared[T]) current() *reading[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil {
		select {
		case <-s.last.done:
			if time.Since(s.last.end) <= s.keep(s.last.end.Sub(s.last.start)) {
				return s.last
			}
		default:
			return s.last
		}
	}
	r := &reading[T]{start: time.Now(), done: make(chan struct{})}
	s.previous, s.last = s.last, r
	go func() {
		defer close(r.done)
		// Not the context of the first caller, because other callers share the read.
		ctx, cancel := context.WithTimeout(context.Background(), s.wait)
		defer cancel()
		r.value = s.read(ctx)
		r.end = time.Now()
	}()
	return r
}
