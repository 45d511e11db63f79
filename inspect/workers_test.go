package inspect_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
)

// A worker claims tasks in each partition, so Workers adds up what the partitions know of it.
func TestWorkersOfAllPartitionsAreListedOnce(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 2, Library: testclock.Library(t, rdb)})
		for p := range 2 {
			testclock.Set(t, rdb, q.Root(p), testclock.Start)
		}
		if _, err := q.EnqueueAll(t.Context(), []queue.Task{{Kind: "k"}, {Kind: "k"}}); err != nil { // a list goes to one partition
			t.Fatal(err)
		}
		if _, err := q.EnqueueAll(t.Context(), []queue.Task{{Kind: "k"}, {Kind: "k"}}); err != nil { // the next list goes to the other
			t.Fatal(err)
		}
		for _, claims := range []struct {
			worker    string
			partition int
			lease     time.Duration
		}{{"two", 0, time.Minute}, {"two", 1, time.Hour}, {"one", 1, time.Second}} {
			reply, err := claim.Of(q).Fetch(t.Context(), claims.partition, claims.worker, claim.Ask{N: 1, Seq: 1, Lease: claims.lease,
				Quotas: []claim.Quota{{Queue: "default", N: 1}}})
			if err != nil || len(reply.Claims) != 1 {
				t.Fatal(reply, err)
			}
		}
		about := `{"name":"mail","host":"h","pid":7,"concurrency":5,"queues":{"default":1},"kinds":["k"],"started_at":1700000000000}`
		if err := rdb.HSet(t.Context(), q.Root(1)+":worker:one", "state", "running", "about", about).Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.HSet(t.Context(), q.Root(0)+":worker:two", "about", "not JSON").Err(); err != nil {
			t.Fatal(err)
		}
		list, err := inspect.Workers(t.Context(), q)
		if err != nil || len(list) != 2 {
			t.Fatalf("Workers = %+v, %v, want two", list, err)
		}
		for i := range list {
			list[i].LeaseEnds = list[i].LeaseEnds.UTC()
			if !list[i].StartedAt.IsZero() {
				list[i].StartedAt = list[i].StartedAt.UTC()
			}
		}
		want := []inspect.Worker{
			{ID: "one", State: queue.WorkerRunning, Held: 1, LeaseEnds: testclock.Start.Add(time.Second).UTC(), Name: "mail", Host: "h", PID: 7, Concurrency: 5,
				Queues: map[string]int{"default": 1}, Kinds: []string{"k"}, StartedAt: time.UnixMilli(1700000000000).UTC()},
			{ID: "two", Held: 2, LeaseEnds: testclock.Start.Add(time.Minute).UTC()},
		}
		if !reflect.DeepEqual(list, want) {
			t.Errorf("Workers = %+v, want %+v", list, want)
		}
	})
}
