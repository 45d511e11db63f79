package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// OtherKinds is the kind that [Figures] tells for kinds without figures of their
// own. A partition keeps those of 1,000 kinds apart and counts all later ones together.
const OtherKinds = "-"

// KindFigures are how the tasks of one kind and queue have ended since the namespace was
// made, and how long they took.
type KindFigures struct {
	Kind, Queue string
	Ends        []Ends // by status, reason and timeout type; only those that happened
	// Duration is how long tasks ran, in seconds: from StartedAt to CompletedAt. Of an agent
	// that includes its waits. A task that was in line when it ended is not in it.
	Duration Histogram
	// Waiting is how long the same tasks were in line before their last attempt, in seconds:
	// from the instant at which they could be fetched to StartedAt.
	Waiting Histogram
	// Lag is how late timeouts were written, in seconds: from CompletedAt to DetectedAt.
	Lag Histogram
	// Share is which part of the time from its creation to its deadline a task had used when it
	// ended: 1 is at the deadline. It has only tasks with a deadline of their own.
	Share Histogram
}

// Ends counts tasks that ended alike.
type Ends struct {
	Status      queue.Status
	Reason      queue.Reason      // "" of COMPLETED
	TimeoutType queue.TimeoutType // "" unless they timed out
	Count       int64
}

// Histogram counts values in buckets that are the same for all kinds.
type Histogram struct {
	Buckets []float64 // upper bounds, each part of its bucket
	Counts  []int64   // values in each bucket alone, and last those above all bounds
	Sum     float64   // of all values
}

// Count is how many values there are.
func (h Histogram) Count() int64 {
	var n int64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// The bounds of lua/store/buckets.lua, in ms and in thousandths.
var (
	timeBounds = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 120_000, 300_000,
		600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000}
	lagBounds   = []int64{1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000}
	shareBounds = []int64{100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}
)

// figuresTogether is of how many kinds the figures are read in one round trip.
const figuresTogether = 50

// Figures are what Redis has counted of tasks that ended, over all partitions, by kind and
// then queue. The counts are written with the ends, so that every reader gets the same. A
// namespace that was opened with [Config].Figures "off" has none.
//
// It is not a snapshot: tasks may end while it reads. It reads some 100 fields for each kind and
// queue in each partition, so ask every few seconds, not every few milliseconds.
//
// A key of the wrong type is left out. Then the error is [refusal.ErrWrongType] and says which, and
// the figures are all others.
func Figures(ctx context.Context, q *queue.Queue) ([]KindFigures, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("figures", "", err)
	}
	sum := map[[2]string]*KindFigures{}
	var wrong error
	for p := range q.Partitions() {
		kinds, err := q.Engine().Client().SMembers(ctx, q.Root(p)+":kinds").Result()
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			wrong, err = errors.Join(wrong, fmt.Errorf("%s: %w", q.Root(p)+":kinds", q.Engine().Explain(p, err))), nil
		}
		for some := range slices.Chunk(kinds, figuresTogether) {
			if err != nil {
				break
			}
			var odd error
			odd, err = addFigures(ctx, q, p, some, sum)
			wrong = errors.Join(wrong, odd)
		}
		if err != nil {
			return nil, refusal.Failed("figures", "", q.Engine().Unread(ctx, p, err))
		}
	}
	var all []KindFigures
	for _, f := range sum {
		slices.SortFunc(f.Ends, func(a, b Ends) int {
			return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.TimeoutType, b.TimeoutType))
		})
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b KindFigures) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue)) })
	return all, refusal.Failed("figures", "", wrong)
}

// addFigures adds those of some kinds in one partition. Its first error tells of keys of
// the wrong type.
func addFigures(ctx context.Context, q *queue.Queue, p int, kinds []string, sum map[[2]string]*KindFigures) (wrong, err error) {
	cursors, fields := map[string]uint64{}, map[string]map[string]string{}
	for _, kind := range kinds {
		cursors[kind], fields[kind] = 0, map[string]string{}
	}
	for len(cursors) > 0 { // HSCAN may tell a field twice
		scans := map[string]*redis.ScanCmd{}
		q.Engine().Client().Pipelined(ctx, func(pipe redis.Pipeliner) error { // each command has its own error
			for kind, cursor := range cursors {
				scans[kind] = pipe.HScan(ctx, q.Root(p)+":figures:"+kind, cursor, "", 1000)
			}
			return nil
		})
		for kind, scan := range scans {
			words, next, err := scan.Result()
			if redis.HasErrorPrefix(err, "WRONGTYPE") {
				wrong = errors.Join(wrong, fmt.Errorf("%s:figures:%s: %w", q.Root(p), kind, q.Engine().Explain(p, err)))
			} else if err != nil {
				return nil, err
			}
			for i := 0; i+1 < len(words); i += 2 {
				fields[kind][words[i]] = words[i+1]
			}
			if cursors[kind] = next; next == 0 {
				delete(cursors, kind)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(fields)) {
		for field, value := range fields[kind] {
			name, rest, found := strings.Cut(field, " ")
			if !found {
				continue // about: what the hash is
			}
			f := sum[[2]string{kind, name}]
			if f == nil {
				f = &KindFigures{Kind: kind, Queue: name, Duration: newHistogram(timeBounds), Waiting: newHistogram(timeBounds),
					Lag: newHistogram(lagBounds), Share: newHistogram(shareBounds)}
				sum[[2]string{kind, name}] = f
			}
			f.add(strings.Split(rest, " "), engine.Number(value))
		}
	}
	return wrong, nil
}

// add adds a field, given without its queue. One that a newer version wrote is left out.
func (f *KindFigures) add(words []string, n int64) {
	if len(words) < 2 {
		return
	}
	h := map[string]*Histogram{"duration": &f.Duration, "waiting": &f.Waiting, "lag": &f.Lag, "share": &f.Share}[words[0]]
	switch {
	case words[0] == "ended":
		words = append(words, "", "")
		f.addEnds(Ends{queue.Status(words[1]), queue.Reason(words[2]), queue.TimeoutType(words[3]), n})
	case h != nil && words[1] == "sum":
		h.Sum += float64(n) / 1000
	case h != nil && words[1] == "more":
		h.Counts[len(h.Buckets)] += n
	case h != nil && engine.Number(words[1]) > 0: // a bound that this program does not know counts in the next one
		at, _ := slices.BinarySearch(h.Buckets, float64(engine.Number(words[1]))/1000)
		h.Counts[at] += n
	}
}

func (f *KindFigures) addEnds(e Ends) {
	for i := range f.Ends {
		if o := &f.Ends[i]; o.Status == e.Status && o.Reason == e.Reason && o.TimeoutType == e.TimeoutType {
			o.Count += e.Count
			return
		}
	}
	f.Ends = append(f.Ends, e)
}

func newHistogram(bounds []int64) Histogram {
	h := Histogram{Counts: make([]int64, len(bounds)+1)}
	for _, bound := range bounds {
		h.Buckets = append(h.Buckets, float64(bound)/1000)
	}
	return h
}
