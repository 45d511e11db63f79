package claim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A worker fetches after some time without a wake token, since a token can be lost. This time grows
// with the number of workers, so that about 20 of them fetch in a second.
func TestTheTimeUntilTheNextFetchGrowsWithTheWorkers(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		alive := 0
		for seq, c := range []struct {
			workers int
			want    time.Duration
		}{{1, time.Second}, {20, time.Second}, {60, 3 * time.Second}, {200, 10 * time.Second}, {500, 10 * time.Second}} {
			for ; alive < c.workers-1; alive++ { // the worker that fetches is the last
				rdb.ZAdd(t.Context(), q.Root(0)+":workers", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: fmt.Sprint("w", alive)})
			}
			r, err := claim.Of(q).Fetch(t.Context(), 0, "asks", claim.Ask{N: 1, Seq: int64(seq + 1), Quotas: []claim.Quota{{Queue: "q", N: 1}}, Lease: time.Minute})
			if err != nil || r.Look != c.want || r.More() {
				t.Errorf("with %d workers, Look = %v, %v, want %v", c.workers, r.Look, err, c.want)
			}
		}
	})
}

// A worker with several partitions must know whether a seq was used: then no partition may give it tasks.
func TestAFetchSaysThatItsSeqWasUsed(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		fetch := func(seq int64, n int) claim.Reply {
			t.Helper()
			r, err := claim.Of(q).Fetch(t.Context(), 0, "w", claim.Ask{N: n, Seq: seq, Quotas: []claim.Quota{{Queue: "default", N: n}}, Lease: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		if r := fetch(5, 1); r.Repeat {
			t.Errorf("a seq that got no task can be used again, but %+v", r)
		}
		queuetest.Enqueue(t, q, queue.Task{})
		if r := fetch(5, 1); r.Repeat || len(r.Claims) != 1 {
			t.Errorf("the first: %+v", r)
		}
		for seq, claims := range map[int64]int{5: 1, 4: 0} {
			for _, n := range []int{1, 0} {
				if r := fetch(seq, n); !r.Repeat || r.Stopping() || r.Look != time.Second || len(r.Claims) != claims {
					t.Errorf("seq %d again, for %d tasks: %+v", seq, n, r)
				}
			}
		}
		if r := fetch(6, 0); r.Repeat {
			t.Errorf("the next: %+v", r)
		}
	})
}
