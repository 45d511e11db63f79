package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// numbered returns n tasks. The payload of each is its index.
func numbered(n int) []queue.Task {
	tasks := make([]queue.Task, n)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Payload: fmt.Append(nil, i)}
	}
	return tasks
}

func TestEnqueueAllKeepsTheOrderOfALongList(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx, tasks := context.Background(), numbered(1203)
		receipts, err := q.EnqueueAll(ctx, tasks)
		if err != nil {
			t.Fatal(err)
		}
		ids, places := make([]string, len(receipts)), map[int][]string{}
		for i, r := range receipts {
			if !r.New || r.Err != nil {
				t.Fatalf("receipt %d = %+v", i, r)
			}
			ids[i] = r.ID
			p := queuetest.Partition(t, r.ID)
			places[p] = append(places[p], r.ID)
		}
		records, err := q.GetAll(ctx, ids)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range records {
			if r == nil || string(r.Payload) != fmt.Sprint(i) {
				t.Fatalf("the task of receipt %d = %+v", i, r)
			}
		}
		if q.Partitions() > 1 && len(places) < 2 {
			t.Errorf("all are in partitions %v, want them spread", places)
		}
		for p, mine := range places {
			if !slices.IsSorted(mine) {
				t.Errorf("the ids of partition %d do not sort in the order of the list", p)
			}
			trip, err := claim.Of(q).Fetch(ctx, p, "w", claim.Ask{N: 500, Seq: 1, Lease: time.Minute, Quotas: []claim.Quota{{Queue: "default", N: 500}}})
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range trip.Claims {
				if c.ID != mine[i] {
					t.Fatalf("claim %d of partition %d is %s, want %s: tasks are claimed in the order of the list", i, p, c.ID, mine[i])
				}
			}
		}
		queuetest.Sound(t, q)
	})
}

func TestEnqueueAllRefusesAListAsAWhole(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		before := redistest.Dump(t, q.Client(), q.Namespace()+":")
		for claim, bad := range map[string]queue.Task{
			"queue": {Kind: "k", Queue: "two words"}, "kind": {}, "timeout": {Kind: "k", Timeout: -1}, "id": {Kind: "k", ID: "mine"},
		} {
			tasks := numbered(1203)
			tasks[700] = bad
			receipts, err := q.EnqueueAll(context.Background(), tasks)
			if !errors.Is(err, refusal.ErrInvalid) || len(receipts) != 0 || !strings.Contains(err.Error(), "task 700: "+claim) {
				t.Errorf("%s: EnqueueAll = %d receipts, %v, want ErrInvalid of task 700", claim, len(receipts), err)
			}
		}
		if after := redistest.Dump(t, q.Client(), q.Namespace()+":"); after != before {
			t.Errorf("a refused list changed something:\n%s", redistest.Diff(before, after))
		}
	})
}

// What only Redis can check is reported for each task, and the others are stored.
func TestEnqueueAllRefusesATaskForItself(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		first := queuetest.Enqueue(t, q, queue.Task{IdempotencyKey: "key"})
		tasks := numbered(7)
		tasks[1].Deadline = time.UnixMilli(1)
		tasks[2].IdempotencyKey = "key"
		tasks[3] = queue.Task{Kind: "k", IdempotencyKey: "key"}
		tasks[4].ID = unknown + ".child"
		tasks[5].ID = first.ID + ".child"
		receipts, err := q.EnqueueAll(context.Background(), tasks)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []error{nil, refusal.ErrInvalid, refusal.ErrConflict, nil, refusal.ErrNotFound, nil, nil} {
			if got := receipts[i]; !errors.Is(got.Err, want) || (want == nil) != (got.Err == nil) {
				t.Errorf("receipt %d = %+v, want error %v", i, got, want)
			}
		}
		if got := receipts[3]; got.ID != first.ID || got.New {
			t.Errorf("the receipt of a known key = %+v, want %s, not new", got, first.ID)
		}
		if stats, err := q.Stats(context.Background()); err != nil || stats.Queues[0].Ready != 4 {
			t.Errorf("Stats = %+v, %v, want 4 ready", stats, err)
		}
		queuetest.Sound(t, q)
	})
}

// The partition of an idempotency key is the same for every producer and every call.
func TestAKeyAlwaysFindsItsFirstTask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		other := queuetest.Open(t, q.Client(), queue.Config{Namespace: q.Namespace()})
		used := map[int]bool{}
		for i := range 40 {
			task := queue.Task{Kind: "k", IdempotencyKey: fmt.Sprint("order ", i)}
			first := queuetest.Enqueue(t, q, task)
			used[queuetest.Partition(t, first.ID)] = true
			task.Timeout = time.Hour // the timeout of the first task counts
			for _, producer := range []*queue.Queue{other, q} {
				if got := queuetest.Enqueue(t, producer, task); got != (queue.Receipt{ID: first.ID}) {
					t.Errorf("Enqueue of a known key = %+v, want %s, not new, no deadline", got, first.ID)
				}
			}
		}
		if len(used) != q.Partitions() {
			t.Errorf("40 keys are in partitions %v, want them in all %d", used, q.Partitions())
		}
		queuetest.Sound(t, q)
	})
}

func TestConcurrentEnqueuesAreAllStoredOnce(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		const callers, each = 64, 25
		var group sync.WaitGroup
		ids := make([][]string, callers)
		for c := range callers {
			group.Go(func() {
				for i := range each {
					r, err := q.Enqueue(context.Background(), queue.Task{Kind: "k", Payload: fmt.Append(nil, c, i)})
					if err != nil || !r.New {
						t.Errorf("Enqueue = %+v, %v", r, err)
						return
					}
					ids[c] = append(ids[c], r.ID)
				}
			})
		}
		group.Wait()
		seen := map[string]bool{}
		for c, mine := range ids {
			records, err := q.GetAll(context.Background(), mine)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range records {
				if r == nil || string(r.Payload) != fmt.Sprint(c, i) || seen[r.ID] {
					t.Fatalf("task %d of caller %d = %+v", i, c, r)
				}
				seen[r.ID] = true
			}
		}
		stats, err := q.Stats(context.Background())
		if err != nil || stats.Queues[0].Ready != callers*each || stats.Queues[0].Enqueued != callers*each {
			t.Errorf("Stats = %+v, %v, want %d ready", stats, err, callers*each)
		}
		queuetest.Sound(t, q)
	})
}

// Concurrent calls share round trips. A call that is given up can have had its effect or not. The
// other calls have theirs.
func TestACallerThatGivesUpDoesNotAffectOthers(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		const callers, each = 32, 20
		var group sync.WaitGroup
		var stored, unclear counter
		for c := range callers {
			group.Go(func() {
				for i := range each {
					ctx, cancel := context.WithCancel(context.Background())
					if c%3 == 0 {
						go cancel()
					}
					r, err := q.Enqueue(ctx, queue.Task{Kind: "k"})
					cancel()
					switch {
					case err == nil && r.New:
						stored.add(1)
					case c%3 == 0 && errors.Is(err, refusal.ErrUnknown) && errors.Is(err, context.Canceled) && r.ID != "":
						unclear.add(1)
					case c%3 == 0 && errors.Is(err, context.Canceled):
					default:
						t.Errorf("call %d of caller %d = %+v, %v", i, c, r, err)
					}
				}
			})
		}
		group.Wait()
		queuetest.Enqueue(t, q, queue.Task{Queue: "last"}) // comes after the calls that are under way in this partition
		stats, err := q.Stats(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		ready := int(stats.Queues[0].Ready)
		if ready < stored.n || ready > stored.n+unclear.n {
			t.Errorf("%d tasks are stored, want the %d acknowledged ones and at most %d more", ready, stored.n, unclear.n)
		}
		queuetest.Sound(t, q)
	})
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
}

func TestAListOfLargePayloadsIsSentInSeveralCalls(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		tasks := make([]queue.Task, 10)
		for i := range tasks {
			tasks[i] = queue.Task{Kind: "k", Payload: []byte(strings.Repeat(string(rune('a'+i)), 1<<20))}
		}
		receipts, err := q.EnqueueAll(context.Background(), tasks)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range receipts {
			record, err := q.Get(context.Background(), r.ID)
			if err != nil || string(record.Payload) != string(tasks[i].Payload) {
				t.Errorf("task %d: %v, and %d bytes", i, err, len(record.Payload))
			}
		}
	})
}
