package curfewtest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

func TestStagesDoNotSeeEachOther(t *testing.T) {
	rdb := redistest.Start(t).Client(t) // one server for all of those that have a Client
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			var config curfewtest.Config
			if i%2 == 0 {
				config.Client = rdb
			}
			c := curfewtest.New(t, config)
			c.Worker.HandleRaw("k", succeed)
			start := c.Now()
			for range i {
				c.Enqueue(task("k"))
				c.Enqueue(queue.Task{Kind: "k", Delay: time.Duration(i) * time.Minute})
			}
			now, later := len(c.Drain()), len(c.DrainAll())
			if moved := c.Now().Sub(start); now != i || later != i || moved != time.Duration(i)*time.Minute {
				t.Errorf("ran %d tasks, and %d after %v, want %d, and %[1]d after %dm", now, later, moved, i, i)
			}
		})
	}
}

func TestAStageDeletesItsKeysAndNoOthers(t *testing.T) {
	for _, server := range []string{"embedded", "redis"} {
		t.Run(server, func(t *testing.T) {
			var config curfewtest.Config
			rdb := redistest.Start(t).Client(t)
			if server == "redis" {
				config.Client, config.Queue = rdb, queue.Config{Namespace: "mine", Partitions: 2}
			}
			if err := rdb.Set(t.Context(), "mine", "1", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := rdb.Set(t.Context(), "mine-:{0}:task", "1", 0).Err(); err != nil {
				t.Fatal(err)
			}
			before := redistest.Dump(t, rdb, "")
			t.Run("test", func(t *testing.T) {
				c := curfewtest.New(t, config)
				if name, begins := c.Queue.Namespace(), config.Queue.Namespace+"-"; server == "redis" && !strings.HasPrefix(name, begins) {
					t.Errorf("the namespace is %s, want one that begins with %s", name, begins)
				}
				c.Worker.HandleRaw("k", succeed)
				for range 10 {
					c.Enqueue(queue.Task{Kind: "k", IdempotencyKey: "x"})
				}
				c.Enqueue(queue.Task{Kind: "k", Delay: time.Hour})
				c.Drain()
			})
			if after := redistest.Dump(t, rdb, ""); after != before {
				t.Errorf("after the test the server holds\n%v\nand before\n%v", after, before)
			}
		})
	}
}

// written is a test that logs into a buffer.
type written struct {
	testing.TB
	log bytes.Buffer
}

func (w *written) Output() io.Writer { return &w.log }

// The context of a test ends before its clean-up. The stage must work until its own clean-up.
func TestAStageWorksInTheCleanUpOfItsTest(t *testing.T) {
	c := curfewtest.New(t)
	t.Cleanup(func() {
		c.Worker.HandleRaw("k", succeed)
		c.Enqueue(task("k"))
		c.Drain()
		c.AssertNothingLeft()
	})
}

func TestTheLoggerWritesToTheTest(t *testing.T) {
	w := &written{TB: t}
	c := curfewtest.New(w)
	c.Queue.Logger().Info("hello", "n", 1)
	if got, want := w.log.String(), "level=INFO msg=hello n=1\n"; got != want {
		t.Errorf("the log is %q, want %q", got, want)
	}
}

func TestNewPanicsWithoutATest(t *testing.T) {
	defer func() {
		if got, want := fmt.Sprint(recover()), "curfewtest: New needs a testing.TB, and got nil"; got != want {
			t.Errorf("New(nil) panics with %q, want %q", got, want)
		}
	}()
	curfewtest.New(nil)
}

func TestTheLibraryOfTheConfigIsIgnored(t *testing.T) {
	both(t, func(t *testing.T, config curfewtest.Config) {
		config.Queue.Library = new(lua.Library) // no call of it works
		c := curfewtest.New(t, config)
		c.Worker.HandleRaw("k", succeed)
		id := c.Enqueue(task("k")).ID
		c.RunOne()
		c.MustComplete(id)
	})
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		e := &example{TB: b}
		curfewtest.New(e)
		e.end()
	}
}

func BenchmarkRunOne(b *testing.B) {
	c := curfewtest.New(b)
	c.Worker.HandleRaw("k", succeed)
	for b.Loop() {
		c.Enqueue(task("k"))
		c.RunOne()
	}
}

func FuzzAHandlerSeesItsPayload(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte{0, 1, 255})
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		c := curfewtest.New(t) // not with f, which must not be used in here
		c.Worker.HandleRaw("echo", func(_ context.Context, payload []byte) ([]byte, error) { return payload, nil })
		id := c.Enqueue(queue.Task{Kind: "echo", Payload: payload}).ID
		c.RunOne()
		if got := c.MustComplete(id); !bytes.Equal(got, payload) {
			t.Errorf("echo gave %q of %q", got, payload)
		}
	})
}
