package worker

import (
	"sync/atomic"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
)

// isolation keeps a task that may have killed its last workers apart from other tasks (lua/task/suspects.lua). Redis gives such
// a task to a worker that holds nothing, and then gives it nothing else. It knows what the worker holds in one partition. So the
// worker says what it holds in the others, and fetches nothing there until the isolation is over.
type isolation struct {
	of     atomic.Pointer[partition] // the partition that isolates the worker; nil if none does
	since  atomic.Int64              // when it began, in µs
	rests  atomic.Int64              // until when the worker is not isolated again, in µs
	claims atomic.Int64              // of all partitions
	ended  atomic.Bool               // the last claim has ended: see claimEnded
}

// isolationBeat is how often an isolated worker asks whether it still is.
const isolationBeat = time.Second

// allows reports whether a partition can fetch.
func (i *isolation) allows(p *partition) bool {
	of := i.of.Load()
	return of == nil || of == p
}

// heldElsewhere returns the number of claims in other partitions. Caller holds mu.
func (p *partition) heldElsewhere() int { return max(int(p.w.isolation.claims.Load())-len(p.held), 0) }

// isolate notes from the reply to a fetch whether the worker is isolated, and reports whether it no longer is. Caller holds mu.
func (p *partition) isolate(r *request, reply *claim.Reply) (over bool) {
	of := &p.w.isolation.of
	i, now := &p.w.isolation, time.Now().UnixMicro()
	if r.alone = reply.Alone; !r.alone {
		if over = of.CompareAndSwap(p, nil); over {
			i.rests.Store(2*now - i.since.Load())
		}
		return over
	}
	if of.CompareAndSwap(nil, p) {
		i.since.Store(now)
	}
	if of.Load() != p {
		return false
	}
	if p.again == nil {
		p.again = time.AfterFunc(isolationBeat, func() { p.w.isolation.ask(p) })
	} else {
		p.again.Reset(isolationBeat)
	}
	return false
}

// mayStart reports whether the worker keeps a task that it was given, since a partition can isolate the worker while others give it
// tasks.
//
//	alone  the task must run alone
//
// Caller holds mu.
func (p *partition) mayStart(alone bool) bool {
	return p.w.isolation.allows(p) && !(alone && p.heldElsewhere() > 0)
}

// ask makes the partition that isolates the worker fetch.
func (i *isolation) ask(p *partition) {
	if i.of.Load() == p {
		p.startFetching(false)
	}
}

// claimEnded makes an isolated worker fetch if its last claim has ended. The caller holds no mu.
func (w *Worker) claimEnded() {
	if w.isolation.ended.Swap(false) {
		if of := w.isolation.of.Load(); of != nil {
			of.startFetching(false)
		}
	}
}

// resume makes all partitions fetch when an isolation is over.
func (w *Worker) resume() {
	for _, p := range w.partitions {
		p.startFetching(false)
	}
}
