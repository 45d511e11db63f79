package queue

import "fmt"

// eventPage is what read_events answers for one partition: events behind a place, and
// what the stream was like at that instant.
type eventPage struct {
	added, length int64 // added: uncounted where the server does not count
	first, last   streamID
	events        []Event
	ids           []streamID // of the events
	more          bool       // the page was full, so there may be more behind it
}

// removed is how many entries the stream has had and lost.
func (p eventPage) removed() int64 {
	if p.added == uncounted {
		return uncounted
	}
	return max(p.added-p.length, 0)
}

// start is the place before the oldest entry that is kept.
func (p eventPage) start() place { return place{p.first.before(), p.removed()} }

// end is the place behind the newest entry.
func (p eventPage) end() place { return place{p.last, p.added} }

// behind is the place behind the page's nth event, from the place before it.
func (p eventPage) behind(from place, nth int) place {
	from.id = p.ids[nth]
	switch {
	case p.added == uncounted, !p.more && nth == len(p.ids)-1:
		from.nth = p.added // whatever was counted before, this is the end
	case from.nth != uncounted:
		from.nth++
	}
	return from
}

// gap tells whether entries behind a place went before this page was read.
func (p eventPage) gap(from place) *Gap {
	counted := from.nth != uncounted && p.added != uncounted
	switch {
	case p.last.compare(from.id) < 0, counted && p.added < from.nth:
		return &Gap{SetBack: true, Missed: uncounted, Oldest: p.first.String()}
	case p.length > 0 && p.first.compare(from.id) <= 0:
		return nil // the entry that was read last is still there, or one before it
	case counted:
		if missed := p.removed() - from.nth; missed > 0 {
			return &Gap{Missed: missed, Oldest: p.first.String()}
		}
		return nil
	case from.id == streamID{}, p.first.before() == from.id, p.last == from.id:
		return nil
	}
	return &Gap{Missed: uncounted, Oldest: p.first.String()}
}

// readEventPage reads an answer of read_events.lua that asked for n.
func readEventPage(reply any, partition, n int) (eventPage, error) {
	words, err := list(reply, nil, 5)
	if err != nil {
		return eventPage{}, err
	}
	first, ok := parseStreamID(text(words[3]))
	last, also := parseStreamID(text(words[4]))
	if !ok || !also {
		return eventPage{}, fmt.Errorf("unexpected answer %.100v", words)
	}
	page := eventPage{added: max(number(words[1]), uncounted), length: number(words[2]), first: first, last: last}
	for _, word := range words[5:] {
		entry, err := list(word, nil, 2)
		if err != nil {
			return eventPage{}, err
		}
		fields, err := elements(entry[1], nil)
		id, ok := parseStreamID(text(entry[0]))
		if err != nil || !ok || len(fields)%2 != 0 {
			return eventPage{}, fmt.Errorf("unexpected answer %.100v", entry)
		}
		page.ids = append(page.ids, id)
		page.events = append(page.events, readEvent(partition, id, fields))
	}
	page.more = n > 0 && len(page.events) >= n
	return page, nil
}
