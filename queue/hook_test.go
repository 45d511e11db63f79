package queue_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// fail enqueues a task with a hook, and lets its attempt fail with an error. It returns the record of the hook.
func fail(t *testing.T, q *queue.Queue, id, text string) *queue.Record {
	t.Helper()
	w := queuetest.Taker{Q: q, Worker: "of-" + id}
	queuetest.Enqueue(t, q, queue.Task{Kind: "k", ID: id, Queue: "q", Hooks: queue.Hooks{OnFailure: queue.Hook{Kind: "h"}}})
	claim := w.Take(t, id, "q")
	w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: queue.Fail, Class: queue.ClassFailed, Error: text})
	return get(t, q, id+"!failure")
}

func get(t *testing.T, q *queue.Queue, id string) *queue.Record {
	t.Helper()
	r, err := q.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Errors are any bytes, and a handler in any language parses the payload of a hook.
func TestTheErrorInAHookIsTextOfABoundedSize(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for id, row := range map[string]struct{ text, want string }{
			"0-plain":    {"boom é", "boom é"},
			"0-bytes":    {"a\xff\xfeb é \xc3", "a??b é ?"},
			"0-controls": {strings.Repeat("\x01", 1<<20), strings.Repeat("\x01", 4096)},
			"0-cut":      {strings.Repeat("é", 1<<19)[1:], "?" + strings.Repeat("é", 2047) + "?"},
		} {
			r := fail(t, q, id, row.text)
			var p queue.HookPayload
			if err := json.Unmarshal(r.Payload, &p); err != nil || p.Error != row.want || !utf8.Valid(r.Payload) || len(r.Payload) > 32<<10 {
				t.Errorf("%s: the payload of the hook has %d bytes and the error %.40q, %v, want %.40q", id, len(r.Payload), p.Error, err, row.want)
			}
			if _, err := q.Cancel(t.Context(), r.ID, ""); err != nil {
				t.Error(err)
			}
			if again, err := q.Retry(t.Context(), r.ID, nil); err != nil || string(get(t, q, again.ID).Payload) != string(r.Payload) {
				t.Errorf("%s: the hook is run again: %v", id, err)
			}
		}
	})
}

// The id of a hook is longer than that of its task. Every method takes it.
func TestTheHookOfTheLongestIDIsATask(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		r := fail(t, q, "0-"+strings.Repeat("x", 510), "boom")
		if len(r.ID) != 520 {
			t.Fatalf("the hook is %s", r.ID)
		}
		if _, err := q.Cancel(t.Context(), r.ID, ""); err != nil {
			t.Error(err)
		}
		again, err := q.Retry(t.Context(), r.ID, nil)
		if err != nil || get(t, q, again.ID).RetryOf != r.ID {
			t.Errorf("Retry of the hook: %v", err)
		}
		if _, err := q.Delete(t.Context(), r.ID); err != nil {
			t.Error(err)
		}
		if _, err := q.Enqueue(t.Context(), queue.Task{Kind: "k", ID: "0-" + strings.Repeat("x", 511)}); err == nil || !strings.Contains(err.Error(), "the limit is 512") {
			t.Errorf("a task with an id of 513 bytes: %v", err)
		}
		queuetest.Sound(t, q)
	})
}
