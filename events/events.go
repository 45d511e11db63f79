package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// maxEvents bounds what one call of Events returns, and one of its script reads.
const maxEvents = 10_000

// Batch is what one call of [Read] read.
type Batch struct {
	Events []Event
	// Gaps are places where events were lost before this reader came to them. Each is
	// told once, before the events behind it.
	Gaps []Gap
	// Next continues behind these events, in this process or another.
	Next Cursor
}

// Gap says that a partition has, or may have, lost events that were never read.
type Gap struct {
	Partition int `json:"partition"`
	// Missed is how many were trimmed before they could be read; -1 with SetBack.
	Missed int64 `json:"missed"`
	// SetBack means that the stream is not the one that the cursor is of, or an older
	// state of it: Redis lost its data, or a replica took over that was behind. Reading
	// begins again at the oldest event that is kept, so events may come a second time.
	SetBack bool `json:"set_back"`
	// Oldest is the stream id of the oldest entry that is kept; 0-0: there is none.
	Oldest string `json:"oldest"`
}

// Read reads what happened behind a cursor: [Oldest], [Newest], or the Next of an
// earlier batch. It returns at most n (1 to 10,000) events, in each partition's order,
// and merged by their instant as far as the partitions have been read; between two
// calls the instants of different partitions may overlap.
//
// With nothing there it waits for something, no longer than wait and ctx; a batch
// without events is no error. An event that this cursor should have met and that has
// been trimmed is told as a [Gap], never passed over in silence. What somebody else
// put into a stream comes as an Event too, without a kind.
//
// A namespace tells only what its [Config].Events says: with "none" there is nothing.
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
		batch.Next = cursorOf(places) // also with an error: Newest is a place by now
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

// begin turns a cursor into places: those of Oldest and Newest are where the streams
// begin and end now.
func begin(ctx context.Context, q *queue.Queue, from Cursor) ([]place, error) {
	if from != Oldest && from != Newest {
		return from.places(q.Partitions())
	}
	places := make([]place, q.Partitions())
	pages, err := readStreams(ctx, q, places, 0)
	for p, page := range pages {
		if from == Newest {
			places[p] = page.end()
		} else {
			places[p] = page.start()
		}
	}
	return places, err
}

// readEvents reads from all partitions and moves the places behind what it returns.
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
			if gap.SetBack { // read from another place than this page
				pages[p].events, pages[p].more = nil, true
			}
		} else if len(page.events) == 0 {
			places[p].id = page.seen // the cursor lay before what it says is read
		}
	}
	batch.Events = merge(places, pages, n)
	return batch, nil
}

// merge takes up to n events off pages: each page in its order, and between pages the
// earlier one first. It stops where a page ends that is not the end of its stream: what
// comes next might be there. It moves the places along.
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

// readStreams reads a page from each partition, some at once.
func readStreams(ctx context.Context, q *queue.Queue, places []place, n int) ([]eventPage, error) {
	pages := make([]eventPage, len(places))
	errs := make([]error, len(places))
	free := make(chan struct{}, 8) // of the client's connections, most are somebody else's
	var group sync.WaitGroup
	for p := range places {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			reply, err := q.Engine().Call(ctx, p, "read_events", places[p].id.String(), n)
			if err == nil {
				pages[p], err = readEventPage(reply, p, n, places[p])
			}
			errs[p] = err
		})
	}
	group.Wait()
	for p, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.EventsKey(p), err)
		}
	}
	return pages, nil
}
