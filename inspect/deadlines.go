package inspect

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// spans are the spans among which Deadlines chooses by default.
var spans = []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour,
	7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour}

// maxBuckets is the maximum number of buckets of Deadlines.
const maxBuckets = 1000

// DueCounts counts the deadlines of live tasks by time.
type DueCounts struct {
	Now     time.Time     // clock of Redis
	Within  time.Duration // the span from Now on, which the buckets divide
	Buckets []int64       // number of deadlines in each part of the span, in order
	Overdue int64         // deadlines up to Now, of tasks whose end is not written yet
	Later   int64         // deadlines after the span
}

// Sum returns the number of deadlines in the span.
func (d DueCounts) Sum() (n int64) {
	for _, count := range d.Buckets {
		n += count
	}
	return n
}

// From returns the start of a bucket. From(len(Buckets)) is the end of the span.
func (d DueCounts) From(bucket int) time.Time {
	n, i := time.Duration(len(d.Buckets)), time.Duration(bucket)
	return d.Now.Add(d.Within/n*i + d.Within%n*i/n) // not d.Within*i/n, because the product can overflow
}

// Deadlines counts the deadlines of live tasks in equal parts of a span from now on. If within is 0,
// it chooses the shortest span, of 10 s to a year, that contains more than half of the future
// deadlines.
//
// It reads one count for each bucket and partition, whatever the number of tasks. It is not a
// snapshot. If within is negative or more than 100 years, or buckets is not 1 to 1,000, it returns
// [refusal.ErrInvalid].
func Deadlines(ctx context.Context, q *queue.Queue, within time.Duration, buckets int) (DueCounts, error) {
	if err := q.Ready(ctx); err != nil {
		return DueCounts{}, refusal.Failed("deadlines", "", err)
	}
	switch {
	case within != 0 && (within < time.Millisecond || within > 100*365*24*time.Hour):
		return DueCounts{}, refusal.Failed("deadlines", "", refusal.Invalid("within", "%v must be 1ms to 100 years", within))
	case buckets < 1 || buckets > maxBuckets:
		return DueCounts{}, refusal.Failed("deadlines", "", refusal.Invalid("buckets", "%d must be 1 to %d", buckets, maxBuckets))
	}
	if err := q.Engine().CheckVersions(ctx); err != nil {
		return DueCounts{}, refusal.Failed("deadlines", "", err)
	}
	now, err := Clock(ctx, q)
	if err != nil {
		return DueCounts{}, refusal.Failed("deadlines", "", err)
	}
	d := DueCounts{Now: now, Within: within}
	if within == 0 {
		if d.Within, err = nearestSpan(ctx, q, now); err != nil {
			return DueCounts{}, refusal.Failed("deadlines", "", err)
		}
	}
	d.Buckets = make([]int64, buckets)
	ranges := [][2]string{{"-inf", score(now)}, {"(" + score(d.From(buckets)), "+inf"}}
	for i := range buckets {
		ranges = append(ranges, [2]string{"(" + score(d.From(i)), score(d.From(i + 1))})
	}
	counts, err := countDue(ctx, q, ranges)
	if err != nil {
		return DueCounts{}, refusal.Failed("deadlines", "", err)
	}
	d.Overdue, d.Later, d.Buckets = counts[0], counts[1], counts[2:]
	return d, nil
}

// Clock returns the time of the Redis server with partition 0, in whole milliseconds.
func Clock(ctx context.Context, q *queue.Queue) (time.Time, error) {
	if err := q.Ready(ctx); err != nil {
		return time.Time{}, refusal.Failed("clock", "", err)
	}
	node, err := q.Engine().Node(ctx, 0)
	if err != nil {
		return time.Time{}, q.Engine().Unread(ctx, 0, err)
	}
	now, err := node.Time(ctx).Result()
	if err != nil {
		return time.Time{}, q.Engine().Unread(ctx, 0, err)
	}
	return now.Truncate(time.Millisecond), nil
}

func score(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

// nearestSpan returns the shortest span that contains more than half of the future deadlines.
func nearestSpan(ctx context.Context, q *queue.Queue, now time.Time) (time.Duration, error) {
	ranges := [][2]string{{"(" + score(now), "+inf"}}
	for _, span := range spans {
		ranges = append(ranges, [2]string{"(" + score(now), score(now.Add(span))})
	}
	counts, err := countDue(ctx, q, ranges)
	if err != nil {
		return 0, err
	}
	for i, span := range spans {
		if n := counts[i+1]; n > 0 && 2*n > counts[0] {
			return span, nil
		}
	}
	if counts[0] > 0 {
		return spans[len(spans)-1], nil
	}
	return spans[1], nil // there are no deadlines to show
}

// countDue counts the deadlines in ranges of scores, over all partitions.
func countDue(ctx context.Context, q *queue.Queue, ranges [][2]string) ([]int64, error) {
	sum := make([]int64, len(ranges))
	for p := range q.Partitions() { // one after the other, because there can be a thousand ranges
		counts := make([]*redis.IntCmd, len(ranges))
		if _, err := q.Engine().Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, r := range ranges {
				counts[i] = pipe.ZCount(ctx, q.Root(p)+":deadlines", r[0], r[1])
			}
			return nil
		}); err != nil {
			return nil, q.Engine().Unread(ctx, p, err)
		}
		for i, count := range counts {
			sum[i] += count.Val()
		}
	}
	return sum, nil
}

// Due is a live task with a deadline.
type Due struct {
	ID          string
	Kind, Queue string       // "" if its record is gone or cannot be read
	Status      queue.Status // as it is stored
	Deadline    time.Time
}

// DueTasks returns live tasks whose deadline is after from and not after to, the earliest first. A
// zero from means no lower bound. It returns at most n tasks, 1 to 100,000; more reports whether
// others were left out.
//
// It reads the records of these tasks, without payloads. A task that ends meanwhile can be missing.
func DueTasks(ctx context.Context, q *queue.Queue, from, to time.Time, n int) (list []Due, more bool, err error) {
	if err := q.Ready(ctx); err != nil {
		return nil, false, refusal.Failed("due tasks", "", err)
	}
	if n < 1 || n > 100_000 {
		return nil, false, refusal.Failed("due tasks", "", refusal.Invalid("n", "%d must be 1 to 100000", n))
	}
	lowest := "-inf"
	if !from.IsZero() {
		lowest = "(" + score(from)
	}
	if err := q.Engine().CheckVersions(ctx); err != nil {
		return nil, false, refusal.Failed("due tasks", "", err)
	}
	replies := make([]*redis.ZSliceCmd, q.Partitions())
	q.Engine().Pipelined(ctx, func(pipe redis.Pipeliner, p int) {
		replies[p] = pipe.ZRangeByScoreWithScores(ctx, q.Root(p)+":deadlines", &redis.ZRangeBy{Min: lowest, Max: score(to), Count: int64(n) + 1})
	})
	for p, reply := range replies {
		rows, err := reply.Result()
		if err != nil {
			return nil, false, refusal.Failed("due tasks", "", q.Engine().Unread(ctx, p, err))
		}
		for _, row := range rows {
			id, _ := row.Member.(string)
			list = append(list, Due{ID: id, Deadline: time.UnixMilli(int64(row.Score))})
		}
	}
	slices.SortStableFunc(list, func(a, b Due) int { return a.Deadline.Compare(b.Deadline) })
	if more = len(list) > n; more {
		list = list[:n]
	}
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	heads, err := readHeads(ctx, q, ids)
	if err != nil {
		return nil, false, refusal.Failed("due tasks", "", err)
	}
	list = slices.DeleteFunc(list, func(d Due) bool { return heads[d.ID].status.Ended() })
	for i := range list {
		h := heads[list[i].ID]
		list[i].Kind, list[i].Queue, list[i].Status = h.kind, h.queue, h.status
	}
	return list, more, nil
}

// head holds the fields in the first lines of a record.
type head struct {
	kind, queue string
	status      queue.Status
}

// A record includes its headers, up to [queue.Config].MaxBytes of them. So a command reads few
// records, and a round trip contains several commands.
const (
	headsInCommand = 20
	headsInTrip    = 240
)

// readHeads reads the first lines of records, whose form docs/reference/keys.md promises. A task
// without a record has the zero head.
func readHeads(ctx context.Context, q *queue.Queue, ids []string) (map[string]head, error) {
	byPartition := map[int][]string{}
	for _, id := range ids {
		if p, err := queue.PartitionOf(id); err == nil && p < q.Partitions() {
			byPartition[p] = append(byPartition[p], id)
		}
	}
	heads := map[string]head{}
	for p, list := range byPartition {
		for ids2 := range slices.Chunk(list, headsInTrip) {
			var reads []*redis.SliceCmd
			if _, err := q.Engine().Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for few := range slices.Chunk(ids2, headsInCommand) {
					var keys []string
					for _, id := range few {
						keys = append(keys, q.Root(p)+":spec:"+id, q.Root(p)+":state:"+id)
					}
					reads = append(reads, pipe.MGet(ctx, keys...))
				}
				return nil
			}); err != nil {
				return nil, q.Engine().Unread(ctx, p, err)
			}
			var texts []any
			for _, reply := range reads {
				texts = append(texts, reply.Val()...)
			}
			if len(texts) != 2*len(ids2) {
				return nil, q.Engine().Unread(ctx, p, errors.New("unexpected reply of MGET"))
			}
			for i, id := range ids2 {
				heads[id] = headOf(engine.Text(texts[2*i]), engine.Text(texts[2*i+1]))
			}
		}
	}
	return heads, nil
}

func headOf(spec, state string) head {
	var h head
	first, _, _ := strings.Cut(spec, "\n")
	words := strings.Fields(first)
	if len(words) < 2 {
		return h
	}
	h.kind, h.queue, h.status = words[0], words[1], queue.Pending
	first, _, _ = strings.Cut(state, "\n")
	if words := strings.Fields(first); len(words) > 0 {
		h.status = queue.Status(words[0])
	}
	return h
}
