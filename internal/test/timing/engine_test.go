package timing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/timing"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// The reply of a read is lost, and then the server loads its data. A read has no effect, so its outcome is known: the call is given up
// as soon as one whose first try was refused, after five seconds. A call that writes, which is the planted one, is repeated for longer.
func TestAReadThatLostItsReplyIsGivenUpAsSoonAsOthers(t *testing.T) {
	server := redistest.Shared(t)
	timing.Keep(t, server.Addr, 7*time.Second, func(planted bool) time.Duration {
		s := harness.New(t, server.Addr, queue.Config{})
		link := faultproxy.Start(t, server.Addr)
		rdb := redis.NewClient(&redis.Options{Addr: link.Addr})
		defer rdb.Close()
		q, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: s.Q.Namespace(), Logger: s.Q.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		call, run := "read", func(ctx context.Context) error { _, err := q.Get(ctx, "0-1M83W6QVA5M9QNG9Q7"); return err }
		if planted {
			call, run = "enqueue", func(ctx context.Context) error { _, err := q.Enqueue(ctx, queue.Task{Kind: "k"}); return err }
		}
		cut := link.CutReply(faultproxy.Script(q.Engine().Library().Handle(call)), -1)
		ctx := t.Context()
		if planted { // twelve seconds are enough to find it
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 12*time.Second)
			defer cancel()
		}
		got := make(chan error, 1)
		start := time.Now()
		go func() { got <- run(ctx) }()
		cut.Await(t)
		link.Say("-LOADING Redis is loading the dataset in memory")
		if err := <-got; !planted && !errors.Is(err, refusal.ErrUnavailable) {
			t.Errorf("the call returns %v, want ErrUnavailable", err)
		}
		return time.Since(start)
	})
}
