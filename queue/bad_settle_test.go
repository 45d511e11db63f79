package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// A worker in another language can send an invalid outcome. It is refused, and the worker keeps
// its claim.
func TestTheScriptRefusesInvalidOutcomes(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	ctx := context.Background()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
		library, err := lua.Load(lua.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &queuetest.Taker{Q: q, Worker: "w"}
		id := queuetest.Enqueue(t, q, queue.Task{MaxRetries: 3}).ID
		claim := w.Take(t, id, "default")
		before := redistest.Digest(t, rdb, q.Root(0))
		for _, row := range []struct {
			verb, class, code, delay, want string
		}{
			{"fail", "banana", "", "", "[INVALID class must be error, failed, timeout or deadline]"},
			{"fail", "", "", "", "[INVALID class must be error, failed, timeout or deadline]"},
			{"fail", "cancelled", "", "", "[INVALID class must be error, failed, timeout or deadline]"},
			{"fail", "error", "abc", "", "[INVALID code must be a whole number, or empty]"},
			{"fail", "error", "1e3", "", "[INVALID code must be a whole number, or empty]"},
			{"fail", "error", "", "inf", "[INVALID delay must be a whole number of ms, or empty]"},
			{"fail", "error", "", "nan", "[INVALID delay must be a whole number of ms, or empty]"},
			{"fail", "error", "", "-100000", "[INVALID delay must be a whole number of ms, or empty]"},
			{"release", "", "", "soon", "[INVALID delay must be a whole number of ms, or empty]"},
			{"release", "", "", "9007199254740993", "[INVALID delay must be a whole number of ms, or empty]"},
			{"explode", "", "", "", "argument 4 must begin an outcome: id, epoch, complete and result; or id, epoch, fail or release, note, class, code, delay and verdict"},
		} {
			reply, err := library.Run(ctx, rdb, "settle", q.Root(0), "w", queue.NewCall(), 1,
				id, claim.Epoch, row.verb, "note", row.class, row.code, row.delay, "")
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprint(reply.([]any)[1].([]any)[0])
			}
			if !strings.HasSuffix(got, row.want) {
				t.Errorf("settle %+v = %s, want %s", row, got, row.want)
			}
		}
		if after := redistest.Digest(t, rdb, q.Root(0)); after != before {
			t.Error("a refused outcome changed something")
		}
		w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Complete})
	})
}

// A refused outcome has the reason in Why. Status has nothing but statuses.
func TestARefusedOutcomeSaysWhy(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
		w := &queuetest.Taker{Q: q, Worker: "w"}
		id := queuetest.Enqueue(t, q, queue.Task{}).ID
		claim := w.Take(t, id, "default")
		rdb.AddHook(&settling{verdict: "maybe"})
		got := w.Report(t, queue.NewCall(), queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Fail})
		if want := (queue.Verdict{Word: queue.VerdictInvalid, Why: "verdict must be empty, retry, fail, or fail: with a reason on one line of up to 1024 bytes"}); got != want {
			t.Errorf("the verdict on an invalid outcome is %+v, want %+v", got, want)
		}
		if err := rdb.Set(context.Background(), q.Root(0)+":state:"+id, "garbage", 0).Err(); err != nil {
			t.Fatal(err)
		}
		got = w.Report(t, queue.NewCall(), queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Complete})
		if want := (queue.Verdict{Word: queue.VerdictBroken, Why: "its state cannot be read"}); got != want {
			t.Errorf("the verdict on a damaged record is %+v, want %+v", got, want)
		}
	})
}

// settling is a client of another version: it sends another verdict of the retry expression.
type settling struct {
	queuetest.Around // for the other methods of a hook
	verdict          string
}

func (s *settling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); lua.IsVerb(cmd.Name()) && len(args) > 8 && slices.Contains(args, any("fail")) {
			args[len(args)-1] = s.verdict
		}
		return next(ctx, cmd)
	}
}
