package inspect_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/jsonx"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/vocabulary"
	"github.com/curfew-dev/curfew/queue"
)

// A task of a low priority is behind others in line and can have waited for longer.
func TestTheOldestTaskOfEachQueueIsFound(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		l := newListed(t, rdb, 2)
		l.add("low", queue.Task{Queue: "a"})
		l.add("low, later", queue.Task{Queue: "a"})
		for i := range 4 {
			l.add("high", queue.Task{Queue: "a", Priority: i})
		}
		l.add("delayed", queue.Task{Queue: "b", Delay: time.Hour})
		l.add("running", queue.Task{Queue: "c"})
		l.take(l.names["running"], "c")
		l.add("last", queue.Task{Queue: "b"})
		got, err := inspect.OldestWaiting(t.Context(), l.Queue)
		want := []inspect.Oldest{
			{"a", l.names["low"], testclock.Start.Add(time.Millisecond), 8 * time.Millisecond},
			{"b", l.names["last"], testclock.Start.Add(9 * time.Millisecond), 0},
		}
		for i := range got {
			got[i].Since = got[i].Since.UTC()
		}
		for i := range want {
			want[i].Since = want[i].Since.UTC()
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("OldestWaiting = %+v, %v, want %+v", got, err, want)
		}
	})
}

// The first task of a queue can have a header of a megabyte, or a record that is damaged.
func TestTheOldestTaskIsFoundWithoutItsHeaders(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		large := map[string]string{"x": strings.Repeat("=\n", 400_000)}
		retried := queuetest.Enqueue(t, q, queue.Task{Queue: "a", Headers: large, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}})
		taker := &queuetest.Taker{Q: q, Worker: "w"}
		taker.Settle(t, queue.Outcome{ID: retried.ID, Epoch: taker.Take(t, retried.ID, "a").Epoch, Verb: queue.Fail, Class: queue.ClassError, Error: "no\nready_at=1\n\n"})
		for _, name := range []string{"b", "c"} {
			damaged := queuetest.Enqueue(t, q, queue.Task{Queue: name})
			if name == "b" {
				rdb.Set(t.Context(), q.Root(0)+":spec:"+damaged.ID, "\xff", 0)
			} else {
				rdb.LPush(t.Context(), q.Root(0)+":state:"+damaged.ID, "x")
			}
		}
		queuetest.Enqueue(t, q, queue.Task{Queue: "b", Priority: 1, Headers: large})
		var replies atomic.Int64
		rdb.AddHook(sized{&replies})
		got, err := inspect.OldestWaiting(t.Context(), q)
		if err != nil || len(got) != 2 || got[0].Queue != "a" || got[1].Queue != "b" {
			t.Fatalf("OldestWaiting = %+v, %v, want the tasks of a and b whose records are sound", got, err)
		}
		r, err := q.Get(t.Context(), retried.ID)
		if err != nil || r.Fields["ready_at"] == "" || strconv.FormatInt(got[0].Since.UnixMilli(), 10) != r.Fields["ready_at"] {
			t.Errorf("the task is ready since %v, want its ready_at %s: %v", got[0].Since, r.Fields["ready_at"], err)
		}
		if n := replies.Load(); n > 20_000 {
			t.Errorf("OldestWaiting read %d bytes, want no header of a megabyte", n)
		}
	})
}

// sized counts the bytes of texts in replies.
type sized struct{ n *atomic.Int64 }

func (s sized) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (s sized) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (s sized) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if text, is := cmd.(*redis.StringCmd); is {
				s.n.Add(int64(len(text.Val())))
			}
		}
		return err
	}
}

func TestTheJSONOfWorkersAndOldestTasksUsesTheVocabulary(t *testing.T) {
	at := testclock.Start
	for _, value := range []any{
		inspect.Oldest{Queue: "a", ID: "0-a", Since: at, Wait: time.Second},
		inspect.Worker{ID: "w", State: queue.WorkerRunning, StopAsked: at, Held: 1, LeaseEnds: at, Name: "n", Host: "h", PID: 7, Concurrency: 5,
			Queues: map[string]int{"a": 2}, Kinds: []string{"k"}, StartedAt: at},
		inspect.Worker{ID: "w", LeaseEnds: at, Strict: []string{"a", "b"}},
	} {
		text := jsonx.Encode(value)
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Errorf("%v: %s", err, text)
		} else if err := vocabulary.CheckJSON(object); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}
