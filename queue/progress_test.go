package queue_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// A worker without package worker can report more progress than a record keeps.
func TestARecordKeepsTheFirst1024BytesOfProgress(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-a", "kind", "k", "timeout_ms", "60000")
		w := &queuetest.Taker{Q: s.q, Worker: "w1"}
		held := w.Take(t, "0-a", "default")
		note := "\x00\xff\n" + strings.Repeat("x", 1<<20)
		record := func() *queue.Record {
			r, err := s.q.Get(context.Background(), "0-a")
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		beat := func() {
			stops, err := claim.Of(s.q).Heartbeat(context.Background(), 0, "w1", time.Minute, 0, []claim.Held{{ID: "0-a", Epoch: held.Epoch, Progress: note}})
			if err != nil || len(stops) > 0 {
				t.Fatalf("Heartbeat = %v, %v", stops, err)
			}
		}
		beat()
		first := record()
		if first.Progress != note[:worker.MaxProgress] {
			t.Errorf("the record keeps %d bytes %.20q…, want the first %d", len(first.Progress), first.Progress, worker.MaxProgress)
		}
		// The task is not put aside for a damaged progress_at.
		key := s.q.Root(0) + ":state:0-a"
		ruined := regexp.MustCompile("progress_at=[0-9]+").ReplaceAllString(rdb.Get(context.Background(), key).Val(), "progress_at=x")
		if err := rdb.Set(context.Background(), key, ruined, 0).Err(); err != nil || !strings.Contains(ruined, "progress_at=x") {
			t.Fatal(ruined, err)
		}
		beat()
		if r := record(); r.Progress != first.Progress || !r.ProgressAt.Equal(first.ProgressAt) || r.Status != queue.Running {
			t.Errorf("with a damaged progress_at the task is %s, and its progress is of %v, want RUNNING and %v", r.Status, r.ProgressAt, first.ProgressAt)
		}
		w.Settle(t, queue.Outcome{ID: "0-a", Epoch: held.Epoch, Verb: queue.Complete})
		queuetest.Sound(t, s.q)
	})
}
