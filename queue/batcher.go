package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/curfew-dev/curfew/refusal"
)

// batcher sends concurrent enqueues of one process in shared calls: while a call is under way, the
// next tasks are collected. There is no timer, so a single task is not delayed. The goroutine that
// makes the calls ends when no task waits.
type batcher struct {
	mu      sync.Mutex
	waiting []*submission
	calls   int        // under way
	idle    []*sending // that carry no call now
}

// submission is one task to enqueue.
type submission struct {
	task     *Task
	id       string
	receipt  Receipt
	err      error
	mayLeave bool          // its caller may give up
	in       *sending      // the call that carries it, unless a caller of the call cannot give up
	done     chan struct{} // closed when receipt and err are final
}

// sending is a call whose callers can all give up. It is used again for later calls, as long as nothing has ended its
// context: making a context for each call would be a sixth of the memory of an enqueue.
type sending struct {
	left int // callers that wait for it
	ctx  context.Context
	stop context.CancelCauseFunc
}

// steady is a call that does not end when its callers give up, since one of them cannot.
var steady = &sending{ctx: context.Background()}

// errNobodyWaits ends a call when all its callers have given up.
var errNobodyWaits = errors.New("nobody waits for the call")

// add adds a submission, and starts a goroutine that makes calls if one is needed. A call does not
// end with the context of one of its submissions, since it carries the others too. It ends when all of them have ended.
func (b *batcher) add(s *submission, call func(context.Context, []*submission)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, s)
	// A second call starts when eight tasks wait, so that Redis works while the reply to the
	// first call is read. (Measured with 16 goroutines: four tasks give a quarter fewer
	// enqueues a second; twelve and more give no more.)
	if b.calls == 2 || b.calls == 1 && len(b.waiting) < 8 {
		return
	}
	b.calls++
	go func() {
		for batch := b.next(); len(batch) > 0; batch = b.next() {
			carrier := b.begin(batch)
			call(carrier.ctx, batch)
			b.end(carrier, batch)
			for _, s := range batch {
				close(s.done)
			}
			// The callers that have their receipts run first, so their next tasks are in the next batch.
			runtime.Gosched()
		}
	}()
}

// next takes the submissions of the next call from the list. If there are none, it counts this
// goroutine as ended.
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

// fail gives the submissions that were not sent the error of an earlier call. They were certainly
// not stored, even if the error of that call is ErrUnknown.
func (b *batcher) fail(err error) {
	for _, s := range b.waiting {
		s.err = fmt.Errorf("%w: not sent, since an earlier call of the list failed: %v", refusal.ErrUnavailable, err)
	}
}

// begin returns what carries a batch.
func (b *batcher) begin(batch []*submission) *sending {
	if slices.ContainsFunc(batch, func(s *submission) bool { return !s.mayLeave }) {
		return steady
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var call *sending
	if last := len(b.idle) - 1; last >= 0 {
		call, b.idle = b.idle[last], b.idle[:last]
	} else {
		call = &sending{}
		call.ctx, call.stop = context.WithCancelCause(context.Background())
	}
	call.left = len(batch) // with those who have just given up: then the call does not end early
	for _, s := range batch {
		s.in = call
	}
	return call
}

// end is called when a call has ended. No submission can end what carries a later call.
func (b *batcher) end(call *sending, batch []*submission) {
	if call == steady {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range batch {
		s.in = nil
	}
	if call.ctx.Err() == nil {
		b.idle = append(b.idle, call)
	}
}

// leave is called when the caller of a submission gives up. It removes a submission that is not in a call yet, and reports whether it
// did. If nobody waits for the call any more, it ends the call.
func (b *batcher) leave(s *submission) (withdrawn bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, other := range b.waiting {
		if other == s {
			b.waiting = append(b.waiting[:i:i], b.waiting[i+1:]...)
			return true
		}
	}
	if s.in != nil {
		if s.in.left--; s.in.left == 0 {
			s.in.stop(errNobodyWaits)
		}
	}
	return false
}
