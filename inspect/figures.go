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

// OtherKinds is the Kind of the [KindFigures] that cover all kinds without figures of their own. A
// partition has separate figures for its first 1,000 kinds, and counts all later kinds together.
const OtherKinds = "-"

// KindFigures says how the tasks of one kind and queue have ended since the namespace was created, and
// how long they took.
type KindFigures struct {
	Kind, Queue string
	Ends        []Ends // sorted by status, reason and timeout type; without counts of 0
	// Duration is how long tasks ran, in seconds: from StartedAt to CompletedAt. For an agent
	// that includes its waits. Tasks that ended without an attempt under way are not counted: they were in
	// line or delayed, or are promises.
	Duration Histogram
	// Waiting is how long the same tasks were in line before their last attempt, in seconds:
	// from the instant at which they could be fetched to StartedAt.
	Waiting Histogram
	// Lag is how late timeouts were written, in seconds: from CompletedAt to DetectedAt.
	Lag Histogram
	// Share is the fraction of its time that a task had used when it ended: 0 at its creation, 1 at its
	// deadline. Only tasks with a deadline of their own are counted.
	Share Histogram
}

// Ends counts the tasks that ended with the same status, reason and timeout type.
type Ends struct {
	Status      queue.Status
	Reason      queue.Reason      // "" for COMPLETED
	TimeoutType queue.TimeoutType // "" unless the tasks timed out
	Count       int64
}

// Histogram counts values in buckets. A figure has the same buckets for all kinds.
type Histogram struct {
	Buckets []float64 // upper bounds, inclusive
	Counts  []int64   // number of values in each bucket, not cumulative; the last is for values above all bounds
	Sum     float64   // sum of all values
}

// Count returns the number of values.
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

// figuresTogether is the number of kinds whose figures are read in one round trip.
const figuresTogether = 50

// Figures returns the counts of ended tasks, summed over all partitions and sorted by kind and queue. Redis
// counts a task in the call that ends it, so all readers get the same counts. A namespace that was
// created with [queue.Config].Figures "off" has no figures.
//
// Figures is not a snapshot: tasks may end while it reads. It reads some 100 fields for each kind and
// queue in each partition, so call it every few seconds, not every few milliseconds.
//
// If a key has the wrong type, Figures returns the figures of all other keys, and an error that wraps
// [refusal.ErrWrongType] and names the key.
func Figures(ctx context.Context, q *queue.Queue) ([]KindFigures, error) {
	if err := q.Ready(ctx); err != nil {
		return nil, refusal.Failed("figures", "", err)
	}
	sum := map[[2]string]*KindFigures{}
	var wrong error
	for p := range q.Partitions() {
		if err := q.Engine().CheckVersion(ctx, p); err != nil {
			return nil, refusal.Failed("figures", "", err)
		}
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

// addFigures adds the figures of some kinds in one partition. wrong names the keys of the wrong type.
func addFigures(ctx context.Context, q *queue.Queue, p int, kinds []string, sum map[[2]string]*KindFigures) (wrong, err error) {
	cursors, fields := map[string]uint64{}, map[string]map[string]string{}
	for _, kind := range kinds {
		cursors[kind], fields[kind] = 0, map[string]string{}
	}
	for len(cursors) > 0 { // HSCAN may return a field twice, so fields collects them by name
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
				continue // "about", which says what the hash is
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

// add adds the value of a field, whose name is given without the queue. It ignores fields that a newer version wrote.
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
	case h != nil && engine.Number(words[1]) > 0: // a bound that this version does not know counts in the next larger bucket
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
