package queue_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// noPermission is an error of Redis that waiting does not cure.
type noPermission struct{}

func (noPermission) Error() string { return "NOPERM this user has no permissions to run this command" }
func (noPermission) RedisError()   {}

// failing refuses the calls that have a key among their arguments.
type failing struct{ key string }

func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), any(f.key)) {
			cmd.SetErr(noPermission{})
			return noPermission{}
		}
		return next(ctx, cmd)
	}
}

func (f failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A change that fails in one partition says which ones it has changed.
func TestAChangeInSomePartitionsSaysWhere(t *testing.T) {
	server := redistest.Start(t)
	for _, row := range []struct {
		claim  string
		fails  int // the partition
		want   string
		change func(ctx context.Context, q *queue.Queue) error
	}{
		{"a setting", 2, "partitions 0 to 1 are changed already: make the call again",
			func(ctx context.Context, q *queue.Queue) error {
				return q.Configure(ctx, queue.Settings{DefaultTimeout: time.Hour})
			}},
		{"defaults of a kind", 1, "partition 0 is changed already: make the call again",
			func(ctx context.Context, q *queue.Queue) error {
				return q.DefineKind(ctx, "k", queue.Defaults{MaxRetries: 1})
			}},
		{"a limit", 1, "partition 0 is changed already: make the call again",
			func(ctx context.Context, q *queue.Queue) error { _, err := q.LimitLength(ctx, "a", 3); return err }},
		{"nothing", 0, "", func(ctx context.Context, q *queue.Queue) error { _, err := q.Pause(ctx, "a"); return err }},
	} {
		rdb := server.Client(t)
		q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 3})
		rdb.AddHook(failing{key: q.Root(row.fails)})
		if err := row.change(t.Context(), q); err == nil || !strings.HasSuffix(err.Error(), row.want) || row.want == "" && strings.Contains(err.Error(), "already") {
			t.Errorf("%s: %v, want %q", row.claim, err, row.want)
		}
	}
}
