package queue_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// position matches a line number of the composed Lua, as Redis and the embedded server write it.
var position = regexp.MustCompile(`:\s?\d+: `)

// People who read an event, a verdict or a log do not have the composed Lua. So errors about a
// damaged record contain no line numbers of it.
func TestErrorsOfABrokenRecordNameNoLineOfTheLua(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, library := context.Background(), testclock.Library(t, rdb)
		q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Library: library})
		root := q.Root(0)
		// Deciding about the end raises an error: one task has a hook without a kind, the other is a timer
		// without an instant.
		a, b := queuetest.Enqueue(t, q, queue.Task{Timeout: time.Second}).ID, queuetest.Enqueue(t, q, queue.Task{Timeout: time.Second}).ID
		const head = "k default 1800000000000 1800000001000 -\n"
		err := errors.Join(rdb.Set(ctx, root+":spec:"+a, head+"hook_cancel:13\n\none two three", 0).Err(),
			rdb.Set(ctx, root+":spec:"+b, head+"role=timer\n\n", 0).Err())
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]string{}
		reply, err := library.Run(ctx, rdb, "cancel", root, "call", "", "", a)
		if err != nil {
			t.Fatal(err)
		}
		told["the reply of cancel"] = fmt.Sprint(reply.([]any)[0].([]any)[1])
		testclock.Set(t, rdb, root, testclock.Start.Add(time.Minute))
		swept, err := reaper.Sweep(ctx, q, 0, "r", 100, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		told["the sweep"] = strings.Join(swept.Errors, ", ")
		explained, err := inspect.Explain(ctx, q, b)
		if err != nil {
			t.Fatal(err)
		}
		told["explain"] = explained.String()
		batch, err := events.Read(ctx, q, events.Oldest, 100, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if e.Kind == "task_broken" {
				told["the event of "+e.TaskID] = e.Fields["error"]
			}
		}
		if len(told) != 5 {
			t.Errorf("%d places report the error, want 5: %q", len(told), told)
		}
		for where, words := range told {
			if words == "" || position.MatchString(words) {
				t.Errorf("%s says %q", where, words)
			}
		}
	})
}

// The record can be sound, and another key be in the way: the reason must not be lost.
func TestErrBrokenSaysWhy(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
		spoil := func(kind, id string) {
			if err := rdb.Set(t.Context(), q.Root(0)+":"+kind+":"+id, "garbage", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for name, row := range map[string]struct {
			spoils, why string
			call        func(id string) error
		}{
			"Resolve": {"result", "the key of its result already exists", func(id string) error {
				_, err := q.Resolve(t.Context(), id, []byte(strings.Repeat("x", 1000)))
				return err
			}},
			"Reject": {"state", "its state cannot be read", func(id string) error { _, err := q.Reject(t.Context(), id, "x"); return err }},
			"Cancel": {"state", "its state cannot be read", func(id string) error { _, err := q.Cancel(t.Context(), id, "x"); return err }},
			"Signal": {"state", "its state cannot be read", func(id string) error { _, err := q.Signal(t.Context(), id, "s", nil); return err }},
			"Result": {"state", "its state cannot be read", func(id string) error { _, err := q.Result(t.Context(), id); return err }},
		} {
			id := queuetest.Enqueue(t, q, queue.Task{Promise: true}).ID
			spoil(row.spoils, id)
			if err := row.call(id); !errors.Is(err, refusal.ErrBroken) || !strings.Contains(err.Error(), row.why) {
				t.Errorf("%s = %v, want ErrBroken: %s", name, err, row.why)
			}
		}
	})
}
