package inspect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/queue"
)

// observed is the reply of explain.lua about a task. Instants are in ms, as they are stored, or 0.
type observed struct {
	id                               string
	now                              int64
	record, over, facts, queue, wait map[string]string
	members                          []member // members that have not ended
	gone                             int      // number of members that ended while further pages were read
	goneBy                           int64    // instant of the last read
	crew                             Crew     // workers of the partition, if the task waits for a worker
}

// member is a member of a wait that has not ended.
type member struct {
	id, place, mask string
	fields          map[string]string
}

// membersAtOnce is the number of members in a page. Redis needs some 10 µs for each.
const membersAtOnce = 200

// maxRestarts is the number of tries if the wait changes while its members are read.
const maxRestarts = 5

var errChanging = errors.New("the agent begins new waits faster than they can be read: call Explain again")

// observe reads a task and, page by page, the members of its wait.
func observe(ctx context.Context, q *queue.Queue, partition int, id string) (*observed, error) {
	for range maxRestarts {
		seen, err := observePage(ctx, q, partition, id, "")
		if err != nil {
			return nil, err
		}
		consistent, err := observeRest(ctx, q, partition, seen)
		if seen.collects() {
			seen.members = slices.DeleteFunc(seen.members, func(m member) bool { return queue.Status(m.fields["status"]).Ended() })
		}
		if consistent || err != nil {
			return seen, err
		}
	}
	return nil, errChanging
}

// observeRest reads the members that are not in the first page. It returns false if the wait ended,
// or its limit began, before the last page was read, because the pages would then disagree. A limit
// begins only once.
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
		if seen.collects() {
			continue
		}
		seen.gone, seen.goneBy = max(int(ms(seen.wait, "pending"))-len(seen.members), 0), next.now
	}
	return true, nil
}

// collects reports whether the agent waits for the next end of any child. Then members holds all its
// children.
func (o *observed) collects() bool { return o.wait["mode"] == string(queue.WaitCollect) }

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
		return nil, engine.Unexpected("answer", words)
	}
	pairs := make(map[string]string, len(words)/2)
	for i := 0; i < len(words); i += 2 {
		pairs[engine.Text(words[i])] = engine.Text(words[i+1])
	}
	return pairs, nil
}

// ms returns a field that is an instant or a number. It returns 0 if the field is missing or not a
// number, because a broken record must be explained too.
func ms(fields map[string]string, name string) int64 {
	n, err := strconv.ParseInt(fields[name], 10, 64)
	if err != nil || n < 0 || n > jsonx.MaxExact {
		return 0
	}
	return n
}

// utc returns an instant in UTC, so that its text is the same on every machine. It returns the zero
// time for 0.
func utc(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
