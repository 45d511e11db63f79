package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// open returns an engine of a namespace of the test's own.
func open(t *testing.T, rdb redis.UniversalClient, library *lua.Library) *engine.Engine {
	t.Helper()
	e, err := engine.New(t.Context(), rdb, engine.Config{Namespace: redistest.Namespace(t), Partitions: 1, Library: library,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// paging is a call with the pages 0, 1 and 2. The page after the last one is to be filled in.
const paging = `
-- Returns  {name, next}
-- Flags    no-writes
local function read_workers(keys, argv)
  local after = {["0"] = "1", ["1"] = "2", ["2"] = %q}
  return {"page " .. argv[1], after[argv[1]]}
end
`

func TestPagesReadsToTheLastPageAndNoneTwice(t *testing.T) {
	rdb := redistest.Shared(t).Client(t)
	for _, test := range []struct{ claim, after, want, failure string }{
		{"page 0 follows the last page", "0", "[page 0 page 1 page 2]", ""},
		{"a page that was read before is an error", "1", "[page 0 page 1 page 2]", "unexpected reply"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			library, err := lua.Load(lua.Options{Replace: map[string]string{"call/read_workers": fmt.Sprintf(paging, test.after)}})
			if err != nil {
				t.Fatal(err)
			}
			e, got := open(t, rdb, library), []string{}
			err = e.Pages(t.Context(), 0, "read_workers", 1, func(reply []any) error {
				got = append(got, engine.Text(reply[0]))
				return nil
			})
			if fmt.Sprint(got) != test.want || (err != nil) != (test.failure != "") || err != nil && !strings.Contains(err.Error(), test.failure) {
				t.Errorf("Pages gives %v, %v, want %s and an error with %q", got, err, test.want, test.failure)
			}
			enough := errors.New("enough")
			if err := e.Pages(t.Context(), 0, "read_workers", 1, func([]any) error { return enough }); err != enough {
				t.Errorf("Pages = %v, want the error of its function", err)
			}
		})
	}
}

func TestFieldsReadsAHashOfAnySize(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		e := open(t, rdb, nil)
		want := map[string]any{}
		for i := range 3000 {
			want[fmt.Sprint("f", i)] = fmt.Sprint(i)
		}
		if err := rdb.HSet(t.Context(), e.Root(0), want).Err(); err != nil {
			t.Fatal(err)
		}
		got, err := e.Fields(t.Context(), e.Root(0))
		if err != nil || len(got) != 3000 || got["f2999"] != "2999" {
			t.Errorf("Fields returns %d fields, %v, want 3000", len(got), err)
		}
	})
}

func TestASubscriptionTellsOfItselfAndOfMessagesUntilStop(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		e := open(t, rdb, nil)
		channels, got := []string{e.AlarmChannel(0), e.EndedChannel(0)}, make(chan string, 10)
		s := e.Subscribe(channels, func(channel, message string) { got <- message })
		if err := s.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first := await.Receive(t, got, "the subscription is established"); first != "" {
			t.Errorf("the first message is %q, want an empty one", first)
		}
		if err := rdb.Publish(t.Context(), channels[1], "x").Err(); err != nil {
			t.Fatal(err)
		}
		for message := ""; message != "x"; {
			if message = await.Receive(t, got, "the message x"); message != "" && message != "x" {
				t.Errorf("the message is %q, want x", message)
			}
		}
		s.Stop()
		before := len(got) // an empty message may come more than once
		rdb.Publish(t.Context(), channels[1], "late")
		if after := len(got); after > before {
			t.Errorf("handle was called %d times after Stop", after-before)
		}
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		again := e.Subscribe(channels, func(string, string) {})
		defer again.Stop()
		if err := again.Await(ended); err != nil && err.Error() != "enough" {
			t.Errorf("Await with a context that has ended = %v, want nil or its cause", err)
		}
	})
}

// An element that arrives while the wait is ended must not be lost: either Pop returns it or it stays in the list.
func TestPopTakesAnElementOrLeavesIt(t *testing.T) {
	rdb := redistest.Shared(t).Client(t) // the embedded server cannot unblock calls
	e := open(t, rdb, nil)
	key := e.WakeKey(0, "q")
	w := e.NewListWait(0, []string{key})
	defer w.Close()
	if popped, err := w.Pop(t.Context(), 0); popped || err != nil {
		t.Errorf("Pop of an empty list = %v, %v, want false", popped, err)
	}
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan bool, 1)
		go func() {
			popped, _ := w.Pop(ctx, time.Minute)
			answered <- popped
		}()
		go cancel()
		if err := rdb.RPush(t.Context(), key, i).Err(); err != nil {
			t.Fatal(err)
		}
		popped := await.Receive(t, answered, "Pop returns")
		cancel()
		if left := rdb.Del(t.Context(), key).Val(); popped == (left == 1) {
			t.Fatalf("round %d: Pop = %v, and %d keys are left", i, popped, left)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if popped, err := w.Pop(ended, time.Minute); popped || err == nil || err.Error() != "enough" {
		t.Errorf("Pop with a context that has ended = %v, %v, want its cause", popped, err)
	}
}

// A call that is left behind would take the next element.
func TestAPopWhoseContextHasEndedTakesNoLaterElement(t *testing.T) {
	rdb := redistest.Shared(t).Client(t) // the embedded server cannot unblock calls
	e := open(t, rdb, nil)
	key, blocks := e.WakeKey(0, "q"), make(chan struct{}, 1)
	rdb.AddHook(queuetest.Around{Name: "blpop", Before: func() { blocks <- struct{}{} }})
	w := e.NewListWait(0, []string{key})
	defer w.Close()
	ctx, stop := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := w.Pop(ctx, time.Minute)
		answered <- err
	}()
	await.Receive(t, blocks, "the call is sent")
	stop()
	if err := await.Receive(t, answered, "Pop returns"); !errors.Is(err, context.Canceled) {
		t.Errorf("Pop whose context ends = %v, want its cause", err)
	}
	if err := rdb.RPush(t.Context(), key, "later").Err(); err != nil {
		t.Fatal(err)
	}
	if left := rdb.LLen(t.Context(), key).Val(); left != 1 {
		t.Errorf("an element that came after Pop had returned was taken by its call: %d are left", left)
	}
}

// Observers learn of each try that Redis refuses because it is a replica, while the call is repeated. Reads are not refused.
func TestObserversLearnThatRedisIsAReplica(t *testing.T) {
	server := redistest.Start(t)
	q := queuetest.Open(t, server.Client(t), queue.Config{})
	if err := server.Client(t).Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	refused := make(chan int, 100)
	q.Engine().Observe(engine.Observer{ReadOnly: func(partition int) { refused <- partition }})
	if _, err := q.Get(t.Context(), "0-A"); !errors.Is(err, refusal.ErrNotFound) || len(refused) > 0 {
		t.Errorf("a read: %v, %d times refused", err, len(refused))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.StopWorker(ctx, "w") }()
	for range 2 {
		if p := await.Receive(t, refused, "a try is refused"); p != 0 {
			t.Errorf("partition %d refuses, want 0", p)
		}
	}
	stop()
	if err := await.Receive(t, ended, "the call ends"); !errors.Is(err, context.Canceled) {
		t.Errorf("the call: %v", err)
	}
}
