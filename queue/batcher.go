package queue

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/curfew-dev/curfew/refusal"
)

// batcher puts concurrent enqueues of one process into one call: while a call is under way
// the next tasks gather. There is no timer, so a lone task is not delayed, and the goroutine
// that makes the calls lives only as long as somebody waits.
type batcher struct {
	mu      sync.Mutex
	waiting []*submission
	calls   int // under way
}

// submission is one task that is handed over.
type submission struct {
	task    *Task
	id      string
	receipt Receipt
	err     error
	done    chan struct{} // closed when receipt and err are final
}

// add adds a submission, and begins to make calls if none is under way. A call does not
// end with the context of one of its submissions: it carries the others too.
func (b *batcher) add(s *submission, call func(context.Context, []*submission)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, s)
	// A second call begins once enough have gathered to be worth one, so that Redis
	// works while the answers of the first are read. (Eight: with four, 16 goroutines make
	// a quarter fewer calls a second; with twelve and more no more.)
	if b.calls == 2 || b.calls == 1 && len(b.waiting) < 8 {
		return
	}
	b.calls++
	go func() {
		for batch := b.next(); len(batch) > 0; batch = b.next() {
			call(context.Background(), batch)
			for _, s := range batch {
				close(s.done)
			}
			// Those that have their answers run first: what they hand over next is in the next batch.
			runtime.Gosched()
		}
	}()
}

// next takes a batch: as many as a call may carry. It notes the end of the calls if nothing
// waits.
func (b *batcher) next() []*submission {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, size := 0, 0
	for n < len(b.waiting) && n < maxList && (n == 0 || size+b.waiting[n].task.size() <= maxCall) {
		size += b.waiting[n].task.size()
		n++
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	if n == 0 {
		b.calls--
	}
	return batch
}

// fail gives those that still wait the error of a call before theirs. They were certainly
// not stored, whatever the error says of the others.
func (b *batcher) fail(err error) {
	for _, s := range b.waiting {
		s.err = fmt.Errorf("%w: not sent, since what went before it failed: %v", refusal.ErrUnavailable, err)
	}
}

// withdraw takes back a submission that is in no call yet.
func (b *batcher) withdraw(s *submission) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiting {
		if other == s {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			return true
		}
	}
	return false
}
