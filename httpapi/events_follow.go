package httpapi

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/events"
)

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
			if batch = f.at.unseen(batch); len(batch.Events) > 0 || len(batch.Gaps) > 0 {
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

// pass moves the position behind an event. It returns false if the position is there already.
func (p *position) pass(e *events.Event) bool {
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

// unseen returns the events of a batch that the position is not behind, and moves the position.
func (p *position) unseen(batch events.Batch) events.Batch {
	fresh := events.Batch{Gaps: batch.Gaps}
	for i := range batch.Events {
		if p.pass(&batch.Events[i]) {
			fresh.Events = append(fresh.Events, batch.Events[i])
		}
	}
	if len(batch.Gaps) > 0 { // events are missing: begin where the batch ends
		*p = *positionOf(batch.Next)
	}
	return fresh
}
