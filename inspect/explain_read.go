package inspect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/jsonline"
	"github.com/curfew-dev/curfew/queue"
)

// observed is what explain.lua tells of a task. Instants are ms, as they are stored; 0 is
// none.
type observed struct {
	id                               string
	now                              int64
	record, over, facts, queue, wait map[string]string
	members                          []member // that have not ended
	gone                             int      // how many ended while the others were read,
	goneBy                           int64    // by this instant
}

// member is one of a wait that has not ended.
type member struct {
	id, place, mask string
	fields          map[string]string
}

// membersAtOnce is how many members a call tells of: it takes Redis some 10 µs each.
const membersAtOnce = 200

// changing is how often a wait may give way to another while its members are read.
const changing = 5

var errChanging = errors.New("the agent goes from wait to wait faster than they can be read: ask again")

// observe reads a task, and the members of its wait page by page.
func observe(ctx context.Context, q *queue.Queue, partition int, id string) (*observed, error) {
	for range changing {
		seen, err := observePage(ctx, q, partition, id, "")
		if err != nil {
			return nil, err
		}
		whole, err := observeRest(ctx, q, partition, seen)
		if whole || err != nil {
			return seen, err
		}
	}
	return nil, errChanging
}

// observeRest reads the members that are not in the first page. It returns false if
// before the last was read the wait was over, or its limit began, which it does once.
func observeRest(ctx context.Context, q *queue.Queue, partition int, seen *observed) (bool, error) {
	for page := seen; len(page.members) == membersAtOnce; {
		next, err := observePage(ctx, q, partition, seen.id, page.members[membersAtOnce-1].place)
		if err != nil {
			return false, err
		}
		for _, name := range []string{"entry", "since", "state", "wait_deadline_at"} {
			if next.wait[name] != seen.wait[name] {
				return false, nil
			}
		}
		seen.members = append(seen.members, next.members...)
		page = next
		seen.gone, seen.goneBy = max(int(ms(seen.wait, "pending"))-len(seen.members), 0), next.now
	}
	return true, nil
}

func observePage(ctx context.Context, q *queue.Queue, partition int, id, from string) (*observed, error) {
	reply, err := q.Engine().Call(ctx, partition, "explain", id, from, membersAtOnce)
	answers, err := engine.List(reply, err, 6)
	if err != nil {
		return nil, err
	}
	seen := &observed{id: id, now: engine.Number(answers[0])}
	for i, into := range []*map[string]string{&seen.record, &seen.over, &seen.facts, &seen.queue, &seen.wait} {
		if *into, err = readPairs(answers[1+i]); err != nil {
			return nil, err
		}
	}
	for _, answer := range answers[6:] {
		fields, err := readPairs(answer)
		if err != nil {
			return nil, err
		}
		seen.members = append(seen.members, member{id: id + "." + fields["name"], place: fields["place"], mask: fields["mask"], fields: fields})
	}
	return seen, nil
}

func readPairs(answer any) (map[string]string, error) {
	words, err := engine.Elements(answer, nil)
	if err != nil {
		return nil, err
	}
	if len(words)%2 != 0 {
		return nil, fmt.Errorf("unexpected answer %.100v", words)
	}
	pairs := make(map[string]string, len(words)/2)
	for i := 0; i < len(words); i += 2 {
		pairs[engine.Text(words[i])] = engine.Text(words[i+1])
	}
	return pairs, nil
}

// ms is a field that is an instant or a number; 0 for none, and for one that is no number,
// so that a broken record is explained like any other.
func ms(fields map[string]string, name string) int64 {
	n, err := strconv.ParseInt(fields[name], 10, 64)
	if err != nil || n < 0 || n > jsonline.MaxExact {
		return 0
	}
	return n
}

// utc is an instant that reads alike everywhere; the zero time for none.
func utc(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
