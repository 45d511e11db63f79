package misuse

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

// Another program upgrades a namespace in which this program works. This program does not know the new version. From then
// on its calls change and read nothing, and its workers and reapers end.
func TestNoCallWorksOnANewerVersion(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Partitions: 2})
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		begun := map[string]chan error{"worker.Run": make(chan error, 1), "reaper.Run": make(chan error, 1)}
		swept := make(chan bool, 100)
		r := reaper.New(q, reaper.Config{Observe: func(int, reaper.Swept) {
			select {
			case swept <- true:
			default:
			}
		}})
		w := worker.New(q, worker.Config{Name: "w", Queues: map[string]int{"other": 1}, NoReaper: true, Beat: 50 * time.Millisecond})
		w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) { return nil, nil })
		go func() { begun["reaper.Run"] <- r.Run(t.Context()) }()
		go func() { begun["worker.Run"] <- w.Run(t.Context()) }()
		await.Receive(t, swept, "a sweep")
		await.Until(t, "the worker is described", func() bool {
			list, err := inspect.Workers(t.Context(), q)
			return err == nil && len(list) == 1 && list[0].PID != 0
		})
		for p := range q.Partitions() {
			if err := rdb.HSet(t.Context(), q.Root(p), "version", "3").Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"worker.Run", "reaper.Run"} {
			if err := await.Receive(t, begun[name], name); !errors.Is(err, refusal.ErrNewer) {
				t.Errorf("%s that had begun = %v, want ErrNewer", name, err)
			}
		}
		before := redistest.Dump(t, rdb, "")
		writes, reads := calls(q, id)
		delete(reads, "Await") // it waits for a token, and reads no record
		for _, all := range []map[string]func(context.Context) error{writes, reads} {
			for name, call := range all {
				if err := call(t.Context()); !errors.Is(err, refusal.ErrNewer) {
					t.Errorf("%s = %v, want ErrNewer", name, err)
				}
			}
		}
		endsAfterwards(t, q, id, refusal.ErrNewer)
		if _, err := queue.Open(t.Context(), rdb, queue.Config{Logger: quiet}); !errors.Is(err, refusal.ErrNewer) {
			t.Errorf("Open = %v, want ErrNewer", err)
		}
		if after := redistest.Dump(t, rdb, ""); after != before {
			t.Errorf("something was changed:\n%s", redistest.Diff(before, after))
		}
	})
}
