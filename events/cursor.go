package events

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Cursor is a place in the events of all partitions, in a form that outlives the
// process: keep it as text, and give it back to [Read]. It holds, for each
// partition in its order and with commas between, an id in its stream and, behind an @,
// the number of the last event read:
//
//	1763732630000-0@12,1763732630004-1@9
//
// Reading goes on with the entries behind that id, and the events of a greater number.
// An entry that has been read in part lies behind the id.
type Cursor string

const (
	// Oldest is before the oldest event that is kept.
	Oldest Cursor = ""
	// Newest is behind the newest event: only what comes from now on is read.
	Newest Cursor = "now"
)

// place is where a reader is in one partition.
type place struct {
	id  streamID
	nth int64 // the number of the last event read
}

// places reads a cursor of so many partitions. Oldest and Newest are no places yet.
func (c Cursor) places(partitions int) ([]place, error) {
	parts := strings.Split(string(c), ",")
	places := make([]place, 0, min(len(parts), queue.MaxPartitions))
	for _, part := range parts {
		p, ok := parsePlace(part)
		if !ok || len(places) == queue.MaxPartitions {
			return nil, refusal.Invalid("cursor", "%q is not valid: it must be \"\" for the oldest event, \"now\", or what an earlier read gave, like 1763732630000-0@12", refusal.Clip(string(c)))
		}
		places = append(places, p)
	}
	if len(places) != partitions {
		return nil, refusal.Invalid("cursor", "is of %d partitions, and this namespace has %d: it is of another namespace", len(places), partitions)
	}
	return places, nil
}

// cursorOf is the text of places; places reads it back as they are.
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
	n, also := jsonline.Decimal(nth)
	return place{at, int64(n)}, ok && also && n <= math.MaxInt64
}

// streamID is the id of an entry. Within a stream they grow.
type streamID struct{ ms, seq uint64 }

func (id streamID) String() string {
	return strconv.FormatUint(id.ms, 10) + "-" + strconv.FormatUint(id.seq, 10)
}

func (id streamID) compare(other streamID) int {
	return cmp.Or(cmp.Compare(id.ms, other.ms), cmp.Compare(id.seq, other.seq))
}

// before is the greatest id that is smaller; of 0-0 itself.
func (id streamID) before() streamID {
	switch {
	case id.seq > 0:
		return streamID{id.ms, id.seq - 1}
	case id.ms > 0:
		return streamID{id.ms - 1, math.MaxUint64}
	}
	return id
}

func parseStreamID(s string) (streamID, bool) {
	ms, seq, found := strings.Cut(s, "-")
	a, ok := jsonline.Decimal(ms)
	b, also := jsonline.Decimal(seq)
	return streamID{a, b}, found && ok && also
}
