package queue_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// refusingFrom makes all calls of scripts fail but the first ones.
type refusingFrom struct {
	with error
	good int
}

func (f *refusingFrom) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *refusingFrom) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if lua.IsVerb(cmd.Name()) {
			if f.good--; f.good < 0 {
				return f.with
			}
		}
		return next(ctx, cmd)
	}
}
func (f *refusingFrom) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The list needs three calls, and the second fails.
func TestAReceiptWithoutAnErrorIsOfAStoredTask(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	rdb.AddHook(&refusingFrom{raised("NOPERM this user has no permissions"), 1})
	receipts, err := q.EnqueueAll(t.Context(), numbered(1203))
	if !errors.Is(err, refusal.ErrNoRight) || len(receipts) != 1203 {
		t.Fatalf("EnqueueAll = %d receipts, %v, want 1203 and ErrNoRight", len(receipts), err)
	}
	good := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: q.Namespace()})
	for i, r := range receipts {
		var want error
		switch {
		case i >= 1000: // not sent
			want = refusal.ErrUnavailable
		case i >= 500:
			want = refusal.ErrNoRight
		}
		if (r.Err == nil) != (want == nil) || !errors.Is(r.Err, want) || errors.Is(r.Err, refusal.ErrUnknown) {
			t.Fatalf("receipt %d = %+v, want the error %v", i, r, want)
		}
		if i%100 == 0 && r.Err == nil {
			if _, err := good.Get(t.Context(), r.ID); err != nil {
				t.Errorf("task %d: %v, want it stored", i, err)
			}
		}
	}
	if stats, err := good.Stats(t.Context()); err != nil || stats.Queues[0].Enqueued != 500 {
		t.Errorf("%+v, %v: want 500 tasks", stats, err)
	}
}
