package queue_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// A retry with a name is made once, whatever has happened to the new task. Another name makes another task.
func TestANamedRetryIsMadeOnce(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := t.Context()
		old := queuetest.Enqueue(t, q, queue.Task{Payload: []byte("p"), Timeout: time.Hour}).ID
		if _, err := q.RetryAs(ctx, "C1", old, nil); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("before its end: %v, want ErrInvalid", err)
		}
		cancel(t, q, old)
		first, err := q.RetryAs(ctx, "C1", old, nil)
		if err != nil || !first.New || first.ID == old {
			t.Fatalf("%+v, %v", first, err)
		}
		cancel(t, q, first.ID)
		if again, err := q.RetryAs(ctx, "C1", old, nil); err != nil || again.New || again.ID != first.ID {
			t.Errorf("the repeat: %+v, %v, want %s", again, err, first.ID)
		}
		if other, err := q.RetryAs(ctx, "C2", old, nil); err != nil || !other.New {
			t.Errorf("another name: %+v, %v", other, err)
		}
		if next, err := q.RetryAs(ctx, "C1", first.ID, nil); err != nil || !next.New {
			t.Errorf("another task: %+v, %v", next, err)
		}
		if _, err := q.RetryAs(ctx, "C1", old, func(t *queue.Task) { t.Payload = []byte("other") }); !errors.Is(err, refusal.ErrConflict) {
			t.Errorf("with another payload: %v, want ErrConflict", err)
		}
		if stats, err := q.Stats(ctx); err != nil || len(stats.Queues) != 1 || stats.Queues[0].Enqueued != 4 {
			t.Errorf("%+v, %v, want 4 tasks", stats, err)
		}
	})
}

func cancel(t *testing.T, q *queue.Queue, id string) {
	t.Helper()
	if _, err := q.Cancel(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
}

// The agent has requested a signal again. A repeat of the first one does not settle the new request.
func TestANamedSignalIsSentOnce(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := t.Context()
		agent := queuetest.Enqueue(t, q, queue.Task{}).ID
		send := func(call, payload string) queue.Resolution {
			t.Helper()
			r, err := q.SignalAs(ctx, call, agent, "go", []byte(payload))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		send("C1", "a")
		next := queuetest.Enqueue(t, q, queue.Task{ID: agent + ".s-go__2", Kind: "signal", Promise: true}).ID
		if r := send("C1", "a"); !r.Done {
			t.Errorf("the repeat: %+v", r)
		}
		if record, err := q.Get(ctx, next); err != nil || record.Status != queue.Pending {
			t.Errorf("after the repeat: %+v, %v", record, err)
		}
		send("C2", "b")
		if record, err := q.Get(ctx, next); err != nil || string(record.Result) != "b" {
			t.Errorf("after the next signal: %+v, %v", record, err)
		}
	})
}

func TestANameOfACallIsOneWord(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	for _, call := range []string{"", "two words", "-", "ä", strings.Repeat("x", 101)} {
		_, retried := q.RetryAs(t.Context(), call, "0-A", nil)
		_, sent := q.SignalAs(t.Context(), call, "0-A", "go", nil)
		for _, err := range []error{retried, sent} {
			if invalid := new(refusal.InvalidError); !errors.As(err, &invalid) || invalid.Field != "call" {
				t.Errorf("call %q: %v", call, err)
			}
		}
	}
}
