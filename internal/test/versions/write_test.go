package versions

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

var write = flag.Bool("write", false, "write the fixture of the newest version of records; its file must not exist yet")

// TestWriteFixture fills a namespace with a task in each state, and with -write keeps it as a file.
func TestWriteFixture(t *testing.T) {
	rdb := redistest.Start(t).Client(t)
	s := newStage(t, rdb, nil, testclock.Start)
	s.fill()
	s.sound()
	text := commands(t, rdb)
	if *write {
		library, err := lua.Load(lua.Options{})
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(fmt.Sprintf("testdata/v%d.redis", library.Versions().Newest), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
}

// fill makes a task in each state. It takes four minutes of the clock.
func (s *stage) fill() {
	ctx := s.Context()
	if err := s.q.DefineKind(ctx, "mail", queue.Defaults{Timeout: 24 * time.Hour, MaxRetries: 2}); err != nil {
		s.Fatal(err)
	}
	s.control(s.q.LimitRunning(ctx, "few", 1))
	s.control(s.q.LimitRate(ctx, "slow", queue.Rate{N: 1, Per: time.Minute}))
	s.control(s.q.Pause(ctx, "paused"))

	w, long := s.worker(), strings.Repeat("long ", 60)
	for _, name := range []string{"gather", "nap", "inbox", "approval"} {
		s.enqueue(queue.Task{Kind: name, Name: name, Payload: []byte(`""`), Timeout: 24 * time.Hour})
	}
	s.run(w, "default")
	if _, err := s.q.Signal(ctx, s.id("inbox"), "message", []byte(`"one"`)); err != nil {
		s.Fatal(err)
	}
	s.run(w, "default")

	gone := queuetest.Taker{Q: s.q, Worker: "gone"}
	take := func(task queue.Task) queue.Claim { return gone.Take(s, s.enqueue(task), queueOf(task)) }
	fail := func(c queue.Claim, text string) {
		gone.Settle(s, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Fail, Error: text})
	}
	c := take(queue.Task{Kind: "echo", ID: "0-DONE", Payload: []byte("p"), IdempotencyKey: "done-1"})
	gone.Settle(s, queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: []byte(long)})
	fail(take(queue.Task{Kind: "echo", Name: "dead", Payload: []byte(long), Headers: map[string]string{"a": "b\nc"}}), "smtp: 421")
	fail(take(queue.Task{Kind: "echo", Name: "retried", MaxRetries: 3, Backoff: queue.Backoff{Delay: 10 * time.Minute}}), "smtp: 450")
	s.enqueue(queue.Task{Kind: "echo", Name: "late", Timeout: time.Second, Hooks: queue.Hooks{OnTimeout: queue.Hook{Kind: "hook", Queue: "later"}}})
	s.enqueue(queue.Task{Kind: "echo", Name: "cancelled"})
	if _, err := s.q.Cancel(ctx, s.id("cancelled"), "no need"); err != nil {
		s.Fatal(err)
	}
	s.advance(4 * time.Minute)

	take(queue.Task{Kind: "echo", Name: "running", Timeout: 24 * time.Hour, MaxRetries: 1})
	take(queue.Task{Kind: "echo", Name: "running-few", Queue: "few", AttemptTimeout: time.Hour, MaxRetries: 1})
	stopping := take(queue.Task{Kind: "echo", Name: "stopping", CancelGrace: time.Hour})
	if _, err := s.q.Cancel(ctx, stopping.ID, "stop"); err != nil {
		s.Fatal(err)
	}
	for _, task := range []queue.Task{
		{ID: "0-PENDING", Timeout: 24 * time.Hour, WarnAt: 0.5, Priority: 2, Headers: map[string]string{"h": "1"}, IdempotencyKey: "pending-1", Payload: []byte("\x00\xff\"q\"\n")},
		{Name: "patient", QueueTimeout: 12 * time.Hour, Payload: []byte(long), Retention: time.Hour},
		{Name: "delayed", Delay: 30 * time.Minute, Hooks: queue.Hooks{OnSuccess: queue.Hook{Kind: "hook"}}},
		{ID: "0-KEYED", IdempotencyKey: "window", IdempotencyScope: queue.ForWindow, IdempotencyWindow: time.Hour},
		{Name: "letter", Kind: "mail", Queue: "mail"},
		{Name: "held", Queue: "paused"},
		{Name: "second-few", Queue: "few"},
		{Name: "slow-1", Queue: "slow"},
		{Name: "slow-2", Queue: "slow"},
	} {
		s.enqueue(task)
	}
	s.enqueue(queue.Task{Kind: "promise", Name: "promise", Promise: true, Timeout: 24 * time.Hour})
	s.enqueue(queue.Task{Kind: "timer", Name: "timer", Timer: true, Delay: time.Hour})
	s.run(w, "slow") // one: the rate allows no more
}

func queueOf(task queue.Task) string {
	if task.Queue == "" {
		return "default"
	}
	return task.Queue
}

func (s *stage) control(_ queue.Controlled, err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) enqueue(task queue.Task) string {
	s.Helper()
	if task.Kind == "" {
		task.Kind = "echo"
	}
	return queuetest.Enqueue(s, s.q, task).ID
}

// id returns the id of a name.
func (s *stage) id(name string) string { return s.q.IDOf(name) }
