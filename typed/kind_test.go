package typed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/faultproxy"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/typed"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) { redistest.Main(m) }

type cycle struct{ Next *cycle }

func round() *cycle { c := &cycle{}; c.Next = c; return c }

// enqueue enqueues args of any type as a task of a kind.
func enqueue[In any](name string, args In, task ...queue.Task) func(context.Context, *queue.Queue) error {
	return func(ctx context.Context, q *queue.Queue) error {
		k := typed.Kind[In, int]{Name: name, Defaults: queue.Defaults{Timeout: time.Minute}}
		for _, t := range task {
			k = k.With(t)
		}
		_, one := k.Enqueue(ctx, q, args)
		_, list := k.EnqueueAll(ctx, q, []In{args})
		_, run := k.Run(ctx, q, args)
		if (one == nil) != (list == nil) || (one == nil) != (run == nil) || errors.Is(one, refusal.ErrInvalid) != errors.Is(run, refusal.ErrInvalid) {
			return errors.New("Enqueue, EnqueueAll and Run do not agree")
		}
		return errors.Join(one, list)
	}
}

// Bad input is refused before anything is stored, defaults included.
func TestBadInput(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{MaxBytes: 1000})
		for _, row := range []struct {
			claim string
			call  func(context.Context, *queue.Queue) error
			says  []string
		}{
			{"an empty kind", enqueue("", 1), []string{"kind"}},
			{"a kind with a space", enqueue("re size", 1), []string{"kind", `"re size"`}},
			{"a kind of 129 bytes", enqueue(strings.Repeat("k", 129), 1), []string{"kind"}},
			{"a channel", enqueue("k", make(chan int)), []string{"kind k", "chan int", "JSON"}},
			{"a function", enqueue("k", func() {}), []string{"kind k", "func()"}},
			{"a channel in an interface", enqueue[any]("k", make(chan int)), []string{"kind k", "chan int"}},
			{"a cycle", enqueue("k", round()), []string{"kind k", "*typed_test.cycle", "cycle"}},
			{"NaN", enqueue("k", math.NaN()), []string{"kind k", "float64", "NaN"}},
			{"infinity", enqueue("k", []float64{math.Inf(1)}), []string{"kind k", "[]float64", "Inf"}},
			{"raw JSON that is none", enqueue("k", json.RawMessage("{")), []string{"kind k", "json.RawMessage"}},
			{"a huge payload", enqueue("k", strings.Repeat("x", 1000)), []string{"payload", "1002 bytes"}},
			{"a kind in With", enqueue("k", 1, queue.Task{Kind: "other"}), []string{"kind", `"other" cannot be set by With`}},
			{"a payload in With", enqueue("k", 1, queue.Task{Payload: []byte("x")}), []string{"payload", "cannot be set by With"}},
			{"a bad setting", enqueue("k", 1, queue.Task{Priority: 4}), []string{"priority"}},
			{"two settings that contradict each other", enqueue("k", 1, queue.Task{Delay: time.Hour}, queue.Task{StartAt: time.Now()}), []string{"start"}},
			{"a bad default", func(ctx context.Context, q *queue.Queue) error {
				_, err := typed.Kind[int, int]{Name: "k", Defaults: queue.Defaults{Timeout: -1}}.Enqueue(ctx, q, 1)
				return err
			}, []string{"timeout"}},
			{"a nil queue", func(ctx context.Context, _ *queue.Queue) error { return enqueue("k", 1)(ctx, nil) }, []string{"queue", "nil"}},
			{"the zero Kind", func(ctx context.Context, q *queue.Queue) error {
				var k typed.Kind[int, int]
				_, err := k.Enqueue(ctx, q, 1)
				return err
			}, []string{"kind"}},
			{"a result of no id", func(ctx context.Context, q *queue.Queue) error {
				_, err := typed.Kind[int, int]{Name: "k"}.Result(ctx, q, "")
				return err
			}, []string{"id"}},
		} {
			t.Run(row.claim, func(t *testing.T) {
				err := row.call(context.Background(), q)
				if !errors.Is(err, refusal.ErrInvalid) {
					t.Fatalf("%v, want ErrInvalid", err)
				}
				for _, word := range row.says {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("%v: it must contain %q", err, word)
					}
				}
				if stats, err := q.Stats(context.Background()); err != nil || len(stats.Queues) != 0 {
					t.Errorf("queues %+v, %v: something was stored", stats.Queues, err)
				}
			})
		}
	})
}

// A zero value of any form is passed to the handler as such.
func TestZeroArguments(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		c := curfewtest.New(t, curfewtest.Config{Client: rdb})
		zero(c, "pointer", (*ResizeArgs)(nil), "null", func(in *ResizeArgs) bool { return in == nil })
		zero(c, "interface", any(nil), "null", func(in any) bool { return in == nil })
		zero(c, "map", map[string]int(nil), "null", func(in map[string]int) bool { return in == nil })
		zero(c, "struct", ResizeArgs{}, `{"URL":""}`, func(in ResizeArgs) bool { return in == ResizeArgs{} })
		zero(c, "bytes", []byte(nil), "", func(in []byte) bool { return len(in) == 0 })
		zero(c, "none", struct{}{}, "{}", func(struct{}) bool { return true })
	})
}

func zero[In any](c *curfewtest.Stage, name string, args In, payload string, is func(In) bool) {
	k := typed.Kind[In, bool]{Name: name}
	k.Handle(c.Worker, func(_ context.Context, in In) (bool, error) { return is(in), nil })
	task, err := k.Task(args)
	if err != nil || string(task.Payload) != payload {
		panic(name + " is not encoded as " + payload)
	}
	if got := string(c.MustComplete(func() string { id := c.Enqueue(task).ID; c.Drain(); return id }())); got != "true" {
		panic("the handler of " + name + " did not get the zero value")
	}
}

// A payload that the handler cannot read fails the task at once. A result that the caller cannot read, or that is of
// another kind, is an error that says so.
func TestTypesThatDoNotMatch(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		c := curfewtest.New(t, curfewtest.Config{Client: rdb})
		ctx, runs := context.Background(), 0
		mine := typed.Kind[int, string]{Name: "k", Defaults: queue.Defaults{MaxRetries: 5}}
		mine.Handle(c.Worker, func(_ context.Context, in int) (string, error) { runs++; return "text", nil })
		theirs := typed.Kind[string, ResizeResult]{Name: "k"} // another program's idea of the same kind

		r, err := theirs.Enqueue(ctx, c.Queue, "no number")
		if err != nil {
			t.Fatal(err)
		}
		c.Drain()
		record := c.AssertStatus(r.ID, queue.Failed)
		if runs != 0 || record.Retries != 0 || !strings.Contains(record.Error, "cannot decode the payload of kind k") {
			t.Errorf("after %d runs and %d retries: %s", runs, record.Retries, record.Error)
		}
		var failed *queue.TaskFailedError
		if _, err = mine.Result(ctx, c.Queue, r.ID); !errors.As(err, &failed) {
			t.Errorf("Result of a failed task = %v", err)
		}

		r, err = mine.Enqueue(ctx, c.Queue, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.Drain()
		_, err = theirs.Result(ctx, c.Queue, r.ID)
		var said *refusal.Error
		if !errors.As(err, &said) || said.Task != r.ID || !strings.Contains(err.Error(), "the result of kind k cannot be decoded as typed_test.ResizeResult") {
			t.Errorf("Result as another type = %v", err)
		}
		if out, err := mine.Result(ctx, c.Queue, r.ID); out != "text" || err != nil {
			t.Errorf("Result = %q, %v", out, err)
		}
		if _, err := Resize.Result(ctx, c.Queue, r.ID); !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), "of kind k, not resize") {
			t.Errorf("Result as another kind = %v, want it refused", err)
		}
		if _, err := Resize.Result(ctx, c.Queue, "0-none"); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("Result of no task = %v", err)
		}
	})
}

// Settings of With are added to each other, and the kind itself does not change.
// A worker that handles a kind and takes no tasks from its queue says so when it starts. Another worker can serve the queue,
// so it is no error.
func TestAWorkerWarnsOfAKindWhoseQueueItDoesNotServe(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		for _, row := range []struct {
			claim  string
			config worker.Config
			want   string
		}{
			{"only default", worker.Config{}, "kind=agent queue=thumbs kind=thumb queue=thumbs"},
			{"another queue", worker.Config{Queues: map[string]int{"images": 1}}, "kind=agent queue=thumbs kind=plain queue=default kind=thumb queue=thumbs"},
			{"both", worker.Config{Queues: map[string]int{"default": 1, "thumbs": 1}}, ""},
			{"in strict order", worker.Config{Strict: []string{"thumbs", "default"}}, ""},
		} {
			var logs bytes.Buffer
			row.config.Logger = slog.New(slog.NewTextHandler(&logs, nil))
			w := worker.New(q, row.config)
			number := func(_ context.Context, in int) (int, error) { return in, nil }
			typed.Kind[int, int]{Name: "thumb", Queue: "thumbs"}.Handle(w, number)
			typed.Kind[int, int]{Name: "plain"}.Handle(w, number)
			typed.Kind[int, int]{Name: "agent", Queue: "thumbs"}.HandleAgent(w, func(_ *agentwait.Agent, in int) (int, error) { return in, nil })
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := w.Run(ctx); err != nil {
				t.Fatalf("%s: Run: %v", row.claim, err)
			}
			var got []string
			for line := range strings.Lines(logs.String()) {
				if _, about, found := strings.Cut(line, "takes no tasks from its queue"); found {
					_, about, _ = strings.Cut(about, "kind=")
					about, _, _ = strings.Cut(about, " worker=")
					got = append(got, "kind="+about)
				}
			}
			if strings.Join(got, " ") != row.want {
				t.Errorf("%s: the warnings are of %q, want %q", row.claim, got, row.want)
			}
		}
	})
}

func TestWithAddsSettings(t *testing.T) {
	k := typed.Kind[int, int]{Name: "k", Queue: "images"}
	all := k.With(queue.Task{Delay: time.Hour, Priority: 1}).With(queue.Task{Priority: 2, Headers: map[string]string{"a": "b"}})
	task, err := all.Task(7)
	if err != nil || task.Kind != "k" || task.Queue != "images" || task.Delay != time.Hour || task.Priority != 2 || task.Headers["a"] != "b" || string(task.Payload) != "7" {
		t.Errorf("%+v, %v", task, err)
	}
	if task, _ := k.With(queue.Task{Queue: "other"}).Task(7); task.Queue != "other" {
		t.Errorf("the queue is %s", task.Queue)
	}
	if task, _ := k.Task(7); task.Delay != 0 || task.Priority != 0 {
		t.Errorf("With has changed the kind: %+v", task)
	}
}

// The first task of a kind has its defaults in every partition, whoever starts first.
func TestTheFirstTaskHasTheDefaults(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		ctx := context.Background()
		receipts, err := Resize.EnqueueAll(ctx, q, make([]ResizeArgs, 8))
		if err != nil {
			t.Fatal(err)
		}
		one, err := Resize.Enqueue(ctx, q, ResizeArgs{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range append(receipts, one) {
			if record, err := q.Get(ctx, r.ID); err != nil || record.Deadline.Sub(record.CreatedAt) != time.Minute || record.MaxRetries != 3 {
				t.Errorf("the task has %v, %d retries, %v", record.Deadline.Sub(record.CreatedAt), record.MaxRetries, err)
			}
		}
	})
}

// The defaults of a worker replace those of a producer that has started before it.
func TestAWorkerReplacesTheDefaultsOfAProducer(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, stop := context.WithCancel(context.Background())
		producer := queuetest.Open(t, rdb, queue.Config{Namespace: "both"})
		if _, err := Resize.With(queue.Task{Queue: "parked"}).Enqueue(ctx, producer, ResizeArgs{}); err != nil {
			t.Fatal(err)
		}
		newer := Resize
		newer.Defaults.Timeout = time.Hour
		w := worker.New(queuetest.Open(t, rdb, queue.Config{Namespace: "both"}), worker.Config{})
		newer.Handle(w, resize)
		if err := w.DefineKinds(ctx); err != nil { // Run does that first
			t.Fatal(err)
		}
		drained := make(chan error)
		go func() { drained <- w.Run(ctx) }()
		defer func() { stop(); <-drained }()
		r, err := Resize.Enqueue(ctx, producer, ResizeArgs{URL: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := Resize.Result(ctx, producer, r.ID); out.Bytes != 100 || err != nil {
			t.Errorf("Result = %+v, %v", out, err)
		}
		if record, err := producer.Get(ctx, r.ID); err != nil || record.Deadline.Sub(record.CreatedAt) != time.Hour {
			t.Errorf("the task has the deadline %v, want that of the worker's defaults; %v", record.Deadline, err)
		}
	})
}

// A reply that is lost while the defaults are stored does not make the task's outcome unknown.
func TestAnUnknownOutcomeOfTheDefaultsIsNoneOfTheTask(t *testing.T) {
	proxy := faultproxy.Start(t, redistest.Shared(t).Addr)
	rdb, err := queue.Connect("redis://" + proxy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
	proxy.CutReply(faultproxy.Command("fcall", "evalsha"), 1)
	r, err := Resize.Enqueue(context.Background(), q, ResizeArgs{})
	if err != nil || !r.New {
		t.Errorf("%+v, %v, want the call repeated", r, err)
	}
}

// A child that an agent schedules has the defaults of its kind, also when no other program has stored them.
func TestAChildHasTheDefaults(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		c := curfewtest.New(t, curfewtest.Config{Client: rdb})
		Album.HandleAgent(c.Worker, album)
		r := c.Enqueue(queue.Task{Kind: "album", Payload: []byte(`[{"URL":"a"}]`), Timeout: time.Hour})
		if c.RunOne(); c.Get(r.ID).Status != queue.Waiting {
			t.Fatalf("the agent is %+v", c.Get(r.ID))
		}
		child := c.Get(r.ID + ".1")
		if child.Kind != "resize" || child.Deadline.Sub(child.CreatedAt) != time.Minute || child.MaxRetries != 3 {
			t.Errorf("the child has %v and %d retries", child.Deadline.Sub(child.CreatedAt), child.MaxRetries)
		}
		c.Worker = worker.New(c.Queue, worker.Config{})
		Resize.Handle(c.Worker, resize)
		Album.HandleAgent(c.Worker, album)
		c.Drain()
		if got := string(c.MustComplete(r.ID)); got != "100" {
			t.Errorf("the agent has the result %s", got)
		}
	})
}

// A child whose settings or arguments are bad is an error of the wait for it.
func TestABadChild(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		c := curfewtest.New(t, curfewtest.Config{Client: rdb})
		agent := typed.Kind[string, int]{Name: "agent"}
		bad := map[string]func(a *agentwait.Agent) *agentwait.Future[int]{
			"a channel": func(a *agentwait.Agent) *agentwait.Future[int] {
				return typed.Kind[chan int, int]{Name: "k"}.Schedule(a, make(chan int))
			},
			"a kind in With": func(a *agentwait.Agent) *agentwait.Future[int] {
				return typed.Kind[int, int]{Name: "k"}.With(queue.Task{Kind: "other"}).Schedule(a, 1)
			},
			"bad defaults": func(a *agentwait.Agent) *agentwait.Future[int] {
				return typed.Kind[int, int]{Name: "k", Defaults: queue.Defaults{WarnAt: 0.5}}.Schedule(a, 1)
			},
		}
		agent.HandleAgent(c.Worker, func(a *agentwait.Agent, in string) (int, error) { return agentwait.Await(a, bad[in](a)) })
		for claim, says := range map[string]string{"a channel": "kind k", "a kind in With": "cannot be set by With", "bad defaults": "warn_percent"} {
			task, err := agent.Task(claim)
			if err != nil {
				t.Fatal(err)
			}
			r := c.Enqueue(task)
			c.Drain()
			if record := c.AssertStatus(r.ID, queue.Failed); !strings.Contains(record.Error, says) {
				t.Errorf("%s: the agent failed with %q, want %q", claim, record.Error, says)
			}
		}
	})
}

func TestHandleRefusesMisuse(t *testing.T) {
	q := queuetest.Open(t, redistest.Shared(t).Client(t), queue.Config{Namespace: redistest.Namespace(t)})
	w := worker.New(q, worker.Config{})
	Resize.Handle(w, resize)
	for claim, call := range map[string]func(){
		"a kind that has a handler": func() { Resize.Handle(w, resize) },
		"a nil worker":              func() { Resize.Handle(nil, resize) },
		"a nil handler":             func() { Resize.Handle(worker.New(q, worker.Config{}), nil) },
		"a nil agent":               func() { Album.HandleAgent(worker.New(q, worker.Config{}), nil) },
		"an empty kind":             func() { typed.Kind[ResizeArgs, ResizeResult]{}.Handle(worker.New(q, worker.Config{}), resize) },
		"nil instead of an agent":   func() { Resize.Schedule(nil, ResizeArgs{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", claim)
				}
			}()
			call()
		}()
	}
}
