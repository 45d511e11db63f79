package queue_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// content returns the fields of a record that say what the task is, without those that a transition
// writes. Instants are in ms after the task was created.
func content(r *queue.Record) map[string]string {
	f := maps.Clone(r.Fields)
	for _, name := range []string{"status", "created_at", "completed_at", "error", "reason", "retry_of", "idempotency_key", "until", "deadline_at",
		"limit_at", "warn_at", "enqueued_by", "idempotency_scope", "available_at", "children", "number", "of_number"} {
		delete(f, name)
	}
	for name, none := range map[string]string{"max_retries": "0", "on_deadline": "cancel_all", "on_timeout": "fail"} {
		if f[name] == none {
			delete(f, name)
		}
	}
	if f["backoff_ms"] == "" {
		for _, name := range []string{"backoff", "backoff_max_ms", "jitter"} {
			delete(f, name)
		}
	}
	if !r.Deadline.IsZero() {
		f["timeout"] = r.Deadline.Sub(r.CreatedAt).String()
	}
	return f
}

// The defaults of the kind change after the first task was enqueued, and must not change the copy.
func TestRetryKeepsTheContentAndTheTimeLimits(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		owner := queuetest.Enqueue(t, q, queue.Task{Timeout: 2 * time.Hour})
		for claim, task := range map[string]queue.Task{
			"all settings": {Queue: "q", Priority: 2, Payload: []byte("p"), Headers: map[string]string{"h": "x"}, Timeout: time.Hour,
				OnDeadline: queue.DeadlineFail, QueueTimeout: time.Minute, AttemptTimeout: 2 * time.Minute, OnTimeout: queue.OnTimeoutRetry, WarnAt: 0.8,
				CancelGrace: time.Second, TimeoutGrace: 2 * time.Second, MaxRetries: 3, Backoff: queue.Backoff{Delay: time.Second, Exponential: true, Max: time.Minute, Jitter: 0.5},
				Hooks:     queue.Hooks{OnSuccess: queue.Hook{Kind: "s"}, OnFailure: queue.Hook{Kind: "f", Queue: "urgent"}, OnTimeout: queue.Hook{Kind: "t"}, OnCancel: queue.Hook{Kind: "c"}},
				Retention: time.Hour, IdempotencyKey: "key"},
			"an expression": {MaxRetries: 1, Retry: "tasks.k.code == 75", AttemptTimeout: time.Minute},
			"an expression, and what follows a timeout": {MaxRetries: 1, Retry: "tasks.k.code == 75", OnTimeout: queue.OnTimeoutRetry, AttemptTimeout: time.Minute},
			"no settings":    {},
			"retries only":   {MaxRetries: 2},
			"a large text":   {Payload: bytes.Repeat([]byte("p"), 2000)},
			"a promise":      {Promise: true, Timeout: time.Hour},
			"a delayed task": {Delay: time.Hour},
			"a child":        {ID: owner.ID + ".1", Budget: 0.5},
		} {
			task.Kind = "k"
			first := queuetest.Enqueue(t, q, task)
			old, err := q.Get(t.Context(), first.ID)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := q.Cancel(t.Context(), first.ID, ""); err != nil {
				t.Fatal(err)
			}
			err = q.DefineKind(t.Context(), "k", queue.Defaults{Timeout: 9 * time.Hour, QueueTimeout: 9 * time.Minute, AttemptTimeout: 9 * time.Minute, CancelGrace: 9 * time.Second,
				TimeoutGrace: 9 * time.Second, MaxRetries: 9, OnDeadline: queue.DeadlineFail, OnTimeout: queue.OnTimeoutRetry, Retention: 9 * time.Hour,
				Backoff: queue.Backoff{Delay: time.Hour, Exponential: true, Max: 9 * time.Hour, Jitter: 0.9},
				Hooks:   queue.Hooks{OnSuccess: queue.Hook{Kind: "later"}, OnFailure: queue.Hook{Kind: "later"}, OnTimeout: queue.Hook{Kind: "later"}, OnCancel: queue.Hook{Kind: "later"}}})
			if err != nil {
				t.Fatal(err)
			}
			again, err := q.Retry(t.Context(), first.ID, nil)
			if err != nil {
				t.Fatalf("%s: %v", claim, err)
			}
			r, err := q.Get(t.Context(), again.ID)
			if err != nil {
				t.Fatal(err)
			}
			if want, got := content(old), content(r); !maps.Equal(got, want) || !bytes.Equal(r.Payload, task.Payload) {
				t.Errorf("%s: the copy has\n%v, want\n%v", claim, got, want)
			}
			if !again.New || r.RetryOf != first.ID || r.IdempotencyKey != "" || strings.Contains(r.ID, ".") || !r.AvailableAt.IsZero() {
				t.Errorf("%s: the copy is %+v, want a new root task without a key and a start", claim, r)
			}
			if err := q.DefineKind(t.Context(), "k", queue.Defaults{}); err != nil {
				t.Fatal(err)
			}
		}
		queuetest.Sound(t, q)
	})
}

func TestRetryPassesTheTaskToChange(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		first := queuetest.Enqueue(t, q, queue.Task{Payload: []byte("first")})
		if _, err := q.Cancel(t.Context(), first.ID, "no need"); err != nil {
			t.Fatal(err)
		}
		again, err := q.Retry(t.Context(), first.ID, func(task *queue.Task) { task.Queue, task.Payload = "other", append(task.Payload, " again"...) })
		if err != nil {
			t.Fatal(err)
		}
		if r, err := q.Get(t.Context(), again.ID); err != nil || r.Queue != "other" || string(r.Payload) != "first again" {
			t.Errorf("the copy is %+v, %v, want the changed queue and payload", r, err)
		}
		if old, err := q.Get(t.Context(), first.ID); err != nil || old.Status != queue.Cancelled || old.Error != "no need" || string(old.Payload) != "first" {
			t.Errorf("the old task is %+v, %v, want it unchanged", old, err)
		}
	})
}
