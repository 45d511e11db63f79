package events

import (
	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
)

// eventPage is the reply of read_events for one partition: the events after a place, and the state
// of the stream at that instant.
type eventPage struct {
	count, before int64 // numbers of all events so far, and of events before the oldest that is kept
	first, last   streamID
	events        []Event
	behind        []place  // the place after each of the events
	seen          streamID // the last entry that was read
	more          bool     // whether there are events after the page
}

// start returns the place before the oldest event that is kept.
func (p eventPage) start() place { return place{p.first.previous(), p.before} }

// end returns the place after the newest event.
func (p eventPage) end() place { return place{p.last, p.count} }

// gap returns the gap between a place and this page, nil if no event after the place was lost.
func (p eventPage) gap(from place) *Gap {
	switch missed := p.before - from.nth; {
	case p.last.compare(from.id) < 0, p.count < from.nth:
		return &Gap{SetBack: true, Missed: -1, Oldest: p.first.String()}
	case missed > 0:
		return &Gap{Missed: missed, Oldest: p.first.String()}
	}
	return nil
}

// readEventPage decodes a reply of read_events.lua to a request for n events after a place.
func readEventPage(reply any, partition, n int, from place) (eventPage, error) {
	words, err := engine.List(reply, nil, 6)
	if err != nil {
		return eventPage{}, err
	}
	first, ok := parseStreamID(engine.Text(words[3]))
	last, okLast := parseStreamID(engine.Text(words[4]))
	if !ok || !okLast {
		return eventPage{}, engine.Unexpected("answer", words)
	}
	page := eventPage{count: engine.Number(words[1]), before: engine.Number(words[2]), first: first, last: last, seen: from.id, more: engine.Number(words[5]) == 1}
	for _, word := range words[6:] {
		entry, err := engine.List(word, nil, 2)
		if err != nil {
			return eventPage{}, err
		}
		fields, err := engine.Elements(entry[1], nil)
		id, ok := parseStreamID(engine.Text(entry[0]))
		if err != nil || !ok || len(fields)%2 != 0 {
			return eventPage{}, engine.Unexpected("answer", entry)
		}
		values := make(map[string]any, len(fields)/2)
		for i := 0; i < len(fields); i += 2 {
			values[engine.Text(fields[i])] = fields[i+1]
		}
		from = page.add(id, In(partition, redis.XMessage{ID: id.String(), Values: values}), from)
	}
	if n > 0 && len(page.events) > n {
		page.events, page.behind, page.more = page.events[:n], page.behind[:n], true
	}
	return page, nil
}

// add adds the events of an entry that are after a place, and returns the place after the entry.
func (p *eventPage) add(id streamID, events []Event, from place) place {
	for i, e := range events {
		if e.Number > 0 && e.Number <= from.nth {
			continue // already read
		}
		// The place stays before the entry until all of its events have been read.
		from.id, from.nth = id.previous(), max(from.nth, e.Number)
		if i == len(events)-1 {
			from.id = id
		}
		p.events, p.behind = append(p.events, e), append(p.behind, from)
	}
	p.seen = id
	return from
}
