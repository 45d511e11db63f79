package facade

import (
	"context"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// A program in another language computes the id of a name, and enqueues and reads the task by it.
func TestATaskHasItsNameInEveryLanguage(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, q := context.Background(), queuetest.Open(t, rdb, queue.Config{Partitions: 4})
		for name, text := range map[string]string{"order-17": "n-order-17", "orders/17": "e-orders_2f17"} {
			id := fmt.Sprintf("%d-%s", crc32.ChecksumIEEE([]byte(name))%4, text)
			if got := q.IDOf(name); got != id {
				t.Fatalf("IDOf(%q) = %s, want %s", name, got, id)
			}
			root := q.Root(queuetest.Partition(t, id))
			if got, err := rdb.FCall(ctx, "curfew_enqueue", []string{root}, "k", "id", id, "payload", "p").Result(); err != nil || got != id {
				t.Fatalf("curfew_enqueue = %v, %v", got, err)
			}
			if r, err := q.Enqueue(ctx, queue.Task{Kind: "k", Name: name, Payload: []byte("p")}); err != nil || r.New || r.ID != id {
				t.Errorf("Enqueue in Go = %+v, %v, want a repeat", r, err)
			}
			if _, err := rdb.FCall(ctx, "curfew_enqueue", []string{root}, "k", "id", id, "payload", "q").Result(); err == nil {
				t.Error("curfew_enqueue with another payload was accepted")
			}
		}
	})
}
