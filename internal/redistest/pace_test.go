package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
)

// busier is a client whose server does much work before each script. A client that only waits sets wait.
type busier struct {
	redis.Hook
	wait time.Duration
}

func (b busier) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		<-time.After(b.wait)
		if b.wait == 0 {
			if err := next(ctx, redis.NewCmd(ctx, "EVAL", "local n = 0; for i = 1, 3000000 do n = n + i % 7 end; return n", 0)); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}
func (b busier) DialHook(next redis.DialHook) redis.DialHook { return next }
func (b busier) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A limit grows with the CPU time that the server takes, within bounds, and not with the time that it waits.
func TestPaceFollowsTheProcessor(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	pace := redistest.Pace(t, rdb)
	if pace < 1 || pace > 4 {
		t.Errorf("Pace = %v, want 1 to 4", pace)
	}
	waits := server.Client(t)
	waits.AddHook(busier{wait: 20 * time.Millisecond})
	if slow := redistest.Pace(t, waits); slow > pace*1.5 {
		t.Errorf("with a server that waits for 20 ms, Pace = %v, want about %v", slow, pace)
	}
	rdb.AddHook(busier{})
	if limit := redistest.Paced(t, rdb, time.Second); limit < 3*time.Second || limit > 4*time.Second {
		t.Errorf("with a server that works several times as much, Paced = %v, want 3s to 4s", limit)
	}
}

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
