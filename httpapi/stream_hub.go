package httpapi

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/queue"
)

const (
	listenerBuffer = 64   // batches that a reader may be behind, then it is cut off
	hubRead        = 1000 // events that are read at once
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

// listener receives the batches that the hub reads.
type listener struct {
	batches chan events.Batch
	slow    chan struct{} // closed when it was cut off
}

// join adds a listener. It gets all events from now on: when join returns, the hub has begun to read.
func (h *hub) join(ctx context.Context, s *Server, q *queue.Queue) (*listener, error) {
	l := &listener{batches: make(chan events.Batch, listenerBuffer), slow: make(chan struct{})}
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
	start := h.runs.begun
	h.mu.Unlock()
	select {
	case <-start:
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
// silent, and otherwise get later events.
func (h *hub) read(ctx context.Context, s *Server, q *queue.Queue, run *hubRun) {
	at, ok := events.Newest, false
	for ctx.Err() == nil {
		wait := time.Minute
		if !ok {
			wait = 0
		}
		batch, err := events.Read(ctx, q, at, hubRead, wait)
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
		if !ok {
			ok = true
			close(run.begun)
		}
		if len(batch.Events) > 0 || len(batch.Gaps) > 0 {
			h.broadcast(run, batch)
		}
	}
}

// broadcast sends a batch to all listeners, and cuts off those whose buffer is full.
func (h *hub) broadcast(run *hubRun, batch events.Batch) {
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

// follower reads events from a cursor on: first those that are there, by itself, then those that the hub reads.
type follower struct {
	c    *call
	at   *position
	live *listener
}

// next returns the events behind the position, and moves it. without waiting it returns none if there are none yet. When ctx ends it
// returns the cause, and errSlow if the reader was cut off.
func (f *follower) next(ctx context.Context, n int) (events.Batch, error) {
	for f.live == nil {
		batch, err := f.read(n)
		if err != nil || len(batch.Events) > 0 || len(batch.Gaps) > 0 {
			return batch, err
		}
		if f.live, err = f.c.space.hub.join(ctx, f.c.server, f.c.q); err != nil {
			return batch, err
		}
		// What came between the read and the hub's first one:
		if batch, err = f.read(n); err != nil || len(batch.Events) > 0 || len(batch.Gaps) > 0 {
			if len(batch.Events) == n {
				f.close() // there may be more
			}
			return batch, err
		}
	}
	for {
		select {
		case batch := <-f.live.batches:
			if batch = f.at.newEvents(batch); len(batch.Events) > 0 || len(batch.Gaps) > 0 {
				return batch, nil
			}
		case <-f.live.slow:
			return events.Batch{}, errSlow
		case <-ctx.Done():
			return events.Batch{}, context.Cause(ctx)
		}
	}
}

// read reads without waiting.
func (f *follower) read(n int) (events.Batch, error) {
	batch, err := events.Read(f.c, f.c.q, f.at.cursor(), n, 0)
	if err == nil {
		f.at = positionOf(batch.Next)
	}
	return batch, err
}

func (f *follower) close() {
	if f.live != nil {
		f.c.space.hub.leave(f.live)
		f.live = nil
	}
}

// position is a cursor that moves from event to event. A cursor has a part for each partition: the id of an entry that was read
// whole, @, and the number of the last event.
type position struct {
	first events.Cursor // the cursor, as long as no event has moved it
	parts []part
}

type part struct {
	whole   string // the last entry that was read whole
	current string // the entry of the last event
	number  int64
}

// positionOf returns the position of a cursor. Oldest and Newest have no parts.
func positionOf(cursor events.Cursor) *position {
	p := &position{first: cursor}
	if cursor == events.Oldest || cursor == events.Newest {
		return p
	}
	for text := range strings.SplitSeq(string(cursor), ",") {
		id, number, _ := strings.Cut(text, "@")
		n, _ := strconv.ParseInt(number, 10, 64) // one that is not valid is refused by the read
		p.parts = append(p.parts, part{id, id, n})
	}
	return p
}

func (p *position) clone() *position {
	return &position{p.first, append([]part(nil), p.parts...)}
}

// before returns the position before the first event of a list that ends at p.
func (p *position) before(list []events.Event) *position {
	start := p.clone()
	for i := len(list) - 1; i >= 0; i-- {
		e := &list[i]
		if e.Number > 0 && e.Partition < len(start.parts) {
			start.parts[e.Partition] = part{idBefore(e.ID), idBefore(e.ID), e.Number - 1}
			start.first = ""
		}
	}
	return start
}

// idBefore returns the greatest id of an entry that is smaller than another one.
func idBefore(id string) string {
	first, second, _ := strings.Cut(id, "-")
	ms, _ := strconv.ParseUint(first, 10, 64)
	seq, _ := strconv.ParseUint(second, 10, 64)
	switch {
	case seq > 0:
		seq--
	case ms > 0:
		ms, seq = ms-1, math.MaxUint64
	}
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq, 10)
}

// advance moves the position behind an event. It returns false if the position is there already.
func (p *position) advance(e *events.Event) bool {
	if e.Partition >= len(p.parts) || e.Number == 0 { // another program has written it
		return true
	}
	at := &p.parts[e.Partition]
	if e.Number <= at.number {
		return false
	}
	if at.current != e.ID {
		at.whole = at.current
	}
	at.current, at.number = e.ID, e.Number
	p.first = ""
	return true
}

// cursor returns the cursor of the position.
func (p *position) cursor() events.Cursor {
	if p.first != "" || p.parts == nil {
		return p.first
	}
	var b strings.Builder
	for i, at := range p.parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(at.whole)
		b.WriteByte('@')
		b.WriteString(strconv.FormatInt(at.number, 10))
	}
	return events.Cursor(b.String())
}

// newEvents returns the events of a batch that the position is not behind, and moves the position.
func (p *position) newEvents(batch events.Batch) events.Batch {
	fresh := events.Batch{Gaps: batch.Gaps}
	for i := range batch.Events {
		if p.advance(&batch.Events[i]) {
			fresh.Events = append(fresh.Events, batch.Events[i])
		}
	}
	if len(batch.Gaps) > 0 { // events are missing: begin where the batch ends
		*p = *positionOf(batch.Next)
	}
	return fresh
}
