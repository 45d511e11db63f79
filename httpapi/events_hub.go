package httpapi

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
)

const (
	mostBehind = 64   // batches that a reader may be behind, then it is cut off
	hubBatch   = 1000 // events that are read at once
)

var errSlow = errors.New("the reader is too slow")

// hub reads the events of a namespace once for all requests that wait for new ones. It reads while there are any.
type hub struct {
	mu      sync.Mutex
	readers map[*listener]bool
	runs    *hubRun
}

// hubRun is the time between the first reader and the last.
type hubRun struct {
	begun chan struct{} // closed when the hub knows where it begins
	stop  context.CancelFunc
}

// listener gets what the hub reads.
type listener struct {
	batches chan events.Batch
	slow    chan struct{} // closed when it was cut off
}

// join adds a listener. It gets all events from now on: when join returns, the hub has begun to read.
func (h *hub) join(ctx context.Context, s *Server, q *queue.Queue) (*listener, error) {
	l := &listener{batches: make(chan events.Batch, mostBehind), slow: make(chan struct{})}
	h.mu.Lock()
	if h.readers == nil {
		h.readers = map[*listener]bool{}
	}
	h.readers[l] = true
	if h.runs == nil {
		reading, stop := context.WithCancel(context.Background())
		h.runs = &hubRun{begun: make(chan struct{}), stop: stop}
		go h.read(reading, s, q, h.runs)
	}
	begun := h.runs.begun
	h.mu.Unlock()
	select {
	case <-begun:
		return l, nil
	case <-ctx.Done():
		h.leave(l)
		return nil, context.Cause(ctx)
	}
}

// leave removes a listener. The last one ends the reading.
func (h *hub) leave(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, l)
	if len(h.readers) == 0 && h.runs != nil {
		h.runs.stop()
		h.runs = nil
	}
}

// read reads until the last listener has left. An error of Redis ends no listener here: the requests end by themselves when Redis is
// silent, and otherwise get what comes later.
func (h *hub) read(ctx context.Context, s *Server, q *queue.Queue, run *hubRun) {
	at, known := events.Newest, false
	for ctx.Err() == nil {
		wait := time.Minute
		if !known {
			wait = 0
		}
		batch, err := events.Read(ctx, q, at, hubBatch, wait)
		at = batch.Next
		if err != nil {
			if ctx.Err() == nil {
				s.log.Debug("Cannot read events", "namespace", q.Namespace(), "error", err)
			}
			select {
			case <-time.After(slowAfter):
			case <-ctx.Done():
			}
			continue
		}
		if !known {
			known = true
			close(run.begun)
		}
		if len(batch.Events) > 0 || len(batch.Gaps) > 0 {
			h.tell(run, batch)
		}
	}
}

// tell gives a batch to all listeners, and cuts those off whose buffer is full.
func (h *hub) tell(run *hubRun, batch events.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.runs != run { // the listeners have another reader
		return
	}
	for l := range h.readers {
		select {
		case l.batches <- batch:
		default:
			delete(h.readers, l)
			close(l.slow)
		}
	}
}
