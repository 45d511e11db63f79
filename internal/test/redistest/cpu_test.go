package redistest_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// A command that keeps the server busy is found, in a pipeline too, and one that only waits is not.
func TestTheMeterFindsTheLongestCommand(t *testing.T) {
	server := redistest.Start(t)
	rdb, ctx := server.Client(t), t.Context()
	meter := redistest.NewMeter(t, server.Client(t), nil)
	rdb.AddHook(meter)
	const busy = "local n = 0; for i = 1, 3000000 do n = n + i % 7 end; return n"
	rdb.Ping(ctx)
	rdb.BLPop(ctx, 100*time.Millisecond, "nothing")
	rdb.Eval(ctx, busy, nil)
	if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); p.Eval(ctx, busy, nil); return nil }); err != nil {
		t.Fatal(err)
	}
	most := meter.Empty()
	if work := most["eval"] / 2; work < 5*time.Millisecond || most["ping"] > work || most["blpop"] > work || most["a pipeline of eval, ping"] < work {
		t.Errorf("the meter measured %v, want a long EVAL, a long pipeline, and the others short", most)
	}
	if left := meter.Empty(); len(left) > 0 {
		t.Errorf("after Empty it has %v", left)
	}
}
