package events

import (
	"context"
	"fmt"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// maxEvents is the maximum number of events that one call of Read returns, and that one script reads.
const maxEvents = 10_000

// Batch is the result of one call of [Read].
type Batch struct {
	Events []Event
	// Gaps lists events that were lost before this reader could read them. Each gap is reported
	// once, at the latest together with the events after it.
	Gaps []Gap
	// Next is the cursor after these events. Any process can continue with it.
	Next Cursor
}

// Gap reports that a partition has lost, or may have lost, events that this reader has not read.
type Gap struct {
	Partition int `json:"partition"`
	// Missed is the number of events that were trimmed before they could be read; -1 with SetBack.
	Missed int64 `json:"missed"`
	// SetBack means that the stream is older than the cursor, or is another stream, because Redis
	// lost its data, or a replica that was behind became the master. Reading begins again at the
	// oldest event that is kept, so events may be read twice.
	SetBack bool `json:"set_back"`
	// Oldest is the stream id of the oldest entry that is kept, or 0-0.
	Oldest string `json:"oldest"`
}

// Read returns the events after a cursor: [Oldest], [Newest], or the Next of an earlier batch. It
// returns at most n (1 to 10,000) events. The events of a partition keep their order, and events of
// several partitions are merged by their instants. The instants of two batches can overlap if their
// events are of different partitions.
//
// If there are no events, Read waits until there are some, for the duration wait at most. When that
// is over, it returns a batch without events and a nil error. When ctx ends, it returns the cause of
// ctx. Events after the cursor that have been trimmed are reported as a [Gap]. Entries that another
// program put into a stream are returned as events without a kind.
//
// If the cursor, n or wait is not valid, Read returns [refusal.ErrInvalid]. Even with an error, Next
// is a cursor from which to continue.
//
// [queue.Config].Events selects the events that a namespace writes; with "none" there are none.
func Read(ctx context.Context, q *queue.Queue, from Cursor, n int, wait time.Duration) (Batch, error) {
	if err := q.Ready(ctx); err != nil {
		return Batch{Next: from}, refusal.Failed("events", "", err)
	}
	if n < 1 || n > maxEvents {
		return Batch{Next: from}, refusal.Failed("events", "", refusal.Invalid("n", "%d must be 1 to %d: read on with the cursor for more", n, maxEvents))
	}
	if wait < 0 {
		return Batch{Next: from}, refusal.Failed("events", "", refusal.Invalid("wait", "%v must not be negative", wait))
	}
	places, err := begin(ctx, q, from)
	if err != nil {
		return Batch{Next: from}, refusal.Failed("events", "", err)
	}
	for until := time.Now().Add(wait); ; {
		batch, err := readEvents(ctx, q, places, n)
		batch.Next = cursorOf(places) // also with an error, because Newest has been resolved to places
		if err != nil {
			return batch, refusal.Failed("events", "", err)
		}
		left := time.Until(until)
		if len(batch.Events) > 0 || len(batch.Gaps) > 0 || left <= 0 {
			return batch, nil
		}
		if err := awaitEvents(ctx, q, places, left); err != nil {
			return batch, refusal.Failed("events", "", err)
		}
	}
}

// begin decodes a cursor. Oldest is before the first event that was ever written, so that trimmed events are reported. Newest is the
// present end of each stream.
func begin(ctx context.Context, q *queue.Queue, from Cursor) ([]place, error) {
	places := make([]place, q.Partitions())
	if from == Oldest {
		return places, nil
	}
	if from != Newest {
		return from.places(q.Partitions())
	}
	pages, err := readStreams(ctx, q, places, 0)
	for p, page := range pages {
		places[p] = page.end()
	}
	return places, err
}

// readEvents reads from all partitions, and moves the places past the events that it returns.
func readEvents(ctx context.Context, q *queue.Queue, places []place, n int) (Batch, error) {
	each := n
	if len(places) > 1 {
		each = min(n, max(16, 2*n/len(places)))
	}
	pages, err := readStreams(ctx, q, places, each)
	if err != nil {
		return Batch{}, err
	}
	var batch Batch
	for p, page := range pages {
		if gap := page.gap(places[p]); gap != nil {
			gap.Partition = p
			batch.Gaps = append(batch.Gaps, *gap)
			places[p] = page.start()
			if gap.SetBack { // the page was read from the wrong place, so read again
				pages[p].events, pages[p].more = nil, true
			}
		} else if len(page.events) == 0 {
			places[p].id = page.seen // skip entries whose events have all been read
		}
	}
	batch.Events = merge(places, pages, n)
	return batch, nil
}

// merge returns up to n events of the pages, the earliest first, and moves the places past them. It
// keeps the order of each page. It stops at the end of a page that is not the end of its stream,
// because the next event there may be the earliest.
func merge(places []place, pages []eventPage, n int) []Event {
	var merged []Event
	taken := make([]int, len(pages))
	for len(merged) < n {
		next := -1
		for p, page := range pages {
			if taken[p] == len(page.events) {
				if page.more {
					return merged
				}
				continue
			}
			if next < 0 || page.events[taken[p]].At.Before(pages[next].events[taken[next]].At) {
				next = p
			}
		}
		if next < 0 {
			break
		}
		page := pages[next]
		merged = append(merged, page.events[taken[next]])
		places[next] = page.behind[taken[next]]
		taken[next]++
	}
	return merged
}

// readStreams reads a page from each partition.
func readStreams(ctx context.Context, q *queue.Queue, places []place, n int) ([]eventPage, error) {
	pages := make([]eventPage, len(places))
	err := engine.Each(len(places), func(p int) error {
		reply, err := q.Engine().Call(ctx, p, "read_events", places[p].id.String(), n)
		if err == nil {
			pages[p], err = readEventPage(reply, p, n, places[p])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", q.EventsKey(p), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pages, nil
}
