package events

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Cursor is a position in the events of all partitions. A program can store it as text, and pass it
// to [Read] in another process. It has one element for each partition, separated by commas: a stream
// id, an @, and the number of the last event that was read:
//
//	1763732630000-0@12,1763732630004-1@9
//
// Read continues after that id, and skips events up to that number. The id of an entry that was read
// only in part is not passed yet.
type Cursor string

const (
	// Oldest is before the first event of the namespace. Events that have been trimmed since are
	// reported as a [Gap].
	Oldest Cursor = ""
	// Newest is after the newest event, so that only later events are read.
	Newest Cursor = "now"
)

// place is the position of a reader in one partition.
type place struct {
	id  streamID
	nth int64 // the number of the last event read
}

// places decodes a cursor for a number of partitions. It does not accept Oldest and Newest, which
// begin resolves.
func (c Cursor) places(partitions int) ([]place, error) {
	elements := strings.Split(string(c), ",")
	places := make([]place, 0, min(len(elements), queue.MaxPartitions))
	for _, element := range elements {
		p, ok := parsePlace(element)
		if !ok || len(places) == queue.MaxPartitions {
			return nil, refusal.Invalid("cursor", "%q is not valid: it must be \"\" for the oldest event, \"now\", or the Next of an earlier read, like 1763732630000-0@12", refusal.Clip(string(c)))
		}
		places = append(places, p)
	}
	if len(places) != partitions {
		return nil, refusal.Invalid("cursor", "is for %d partitions, and this namespace has %d: it is from another namespace", len(places), partitions)
	}
	return places, nil
}

// cursorOf encodes places as a cursor.
func cursorOf(places []place) Cursor {
	var b []byte
	for i, p := range places {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, p.id.String()...)
		b = strconv.AppendInt(append(b, '@'), p.nth, 10)
	}
	return Cursor(b)
}

func parsePlace(s string) (place, bool) {
	id, nth, _ := strings.Cut(s, "@")
	at, ok := parseStreamID(id)
	n, okNth := jsonx.Decimal(nth)
	return place{at, int64(n)}, ok && okNth && n <= math.MaxInt64
}

// streamID is the id of an entry. Ids increase within a stream.
type streamID struct{ ms, seq uint64 }

func (id streamID) String() string {
	return strconv.FormatUint(id.ms, 10) + "-" + strconv.FormatUint(id.seq, 10)
}

func (id streamID) compare(other streamID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.seq, other.seq))
}

// previous returns the greatest id that is smaller, or 0-0 for 0-0.
func (id streamID) previous() streamID {
	switch {
	case id.seq > 0:
		return streamID{id.ms, id.seq - 1}
	case id.ms > 0:
		return streamID{id.ms - 1, math.MaxUint64}
	}
	return id
}

func parseStreamID(s string) (streamID, bool) {
	ms, seq, separated := strings.Cut(s, "-")
	a, ok := jsonx.Decimal(ms)
	b, okSeq := jsonx.Decimal(seq)
	return streamID{a, b}, separated && ok && okSeq
}
