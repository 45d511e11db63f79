package curfewtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// example takes the place of the *testing.T, which an example does not have.
type example struct {
	testing.TB
	ends []func()
}

func (e *example) Output() io.Writer        { return io.Discard }
func (e *example) Helper()                  {}
func (e *example) Context() context.Context { return context.Background() }
func (e *example) Cleanup(end func())       { e.ends = append(e.ends, end) }

func (e *example) Error(args ...any)                 { fmt.Println(args...) }
func (e *example) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (e *example) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (e *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (e *example) end() {
	for i := len(e.ends) - 1; i >= 0; i-- {
		e.ends[i]()
	}
}

type Render struct{ Page string }

// render is the handler under test: it fails while the site is down.
func render(ctx context.Context, in Render) (string, error) {
	if worker.Info(ctx).Attempt == 1 {
		return "", worker.RetryAfter(30*time.Second, errors.New("503"))
	}
	return in.Page + ".png", nil
}

// A test of a handler that is retried.
func Example() {
	t := &example{} // in a test: its *testing.T
	defer t.end()

	c := curfewtest.New(t)
	worker.Handle(c.Worker, "render", render)

	r := c.Enqueue(queue.Task{Kind: "render", Payload: []byte(`{"Page": "index"}`), MaxRetries: 3})
	run := c.RunOne()
	fmt.Println(run.Status, run.LastError, run.AvailableAt.Sub(c.Now()))

	c.Advance(30 * time.Second)
	c.RunOne()
	fmt.Println(string(c.MustComplete(r.ID)))
	c.AssertNothingLeft()
	// Output:
	// PENDING 503 30s
	// "index.png"
}

// The code under test enqueues a task, and the test checks it.
func ExampleStage_AssertEnqueued() {
	t := &example{}
	defer t.end()
	c := curfewtest.New(t)

	signUp := func(ctx context.Context, q *queue.Queue, address string) error {
		_, err := q.Enqueue(ctx, queue.Task{Kind: "welcome", Queue: "mail", Payload: []byte(address)})
		return err
	}
	if err := signUp(t.Context(), c.Queue, "ann@example.com"); err != nil {
		t.Fatal(err)
	}
	c.AssertEnqueued("welcome", func(r *queue.Record) bool { return string(r.Payload) == "ann@example.com" })
	c.AssertEnqueued("invoice")
	// Output:
	// There is no task of kind "invoice". There are 1 of kind "welcome".
}

// A handler that moves the clock takes that long. If its attempt is over by then, its context has ended, and
// its result is refused.
func ExampleStage_Advance() {
	t := &example{}
	defer t.end()
	c := curfewtest.New(t)
	worker.Handle(c.Worker, "slow", func(ctx context.Context, _ []byte) (string, error) {
		c.Advance(time.Minute)
		fmt.Println(context.Cause(ctx))
		return "too late", nil
	})

	r := c.Enqueue(queue.Task{Kind: "slow", AttemptTimeout: 10 * time.Second})
	run := c.RunOne()
	fmt.Println(run.Verdict.Accepted(), c.AssertTimedOut(r.ID).Error)
	// Output:
	// attempt exceeded the task's attempt timeout
	// false Task exceeded deadline
}

// DrainAll moves the clock to each attempt.
func ExampleStage_DrainAll() {
	t := &example{}
	defer t.end()
	c := curfewtest.New(t)
	start := c.Now()
	c.Worker.HandleRaw("poll", func(ctx context.Context, _ []byte) ([]byte, error) {
		fmt.Println("attempt", worker.Info(ctx).Attempt, "after", c.Now().Sub(start))
		return nil, errors.New("not there yet")
	})

	r := c.Enqueue(queue.Task{Kind: "poll", MaxRetries: 3, Backoff: queue.Backoff{Delay: time.Minute, Exponential: true}})
	c.DrainAll()
	c.AssertStatus(r.ID, queue.Failed)
	// Output:
	// attempt 1 after 0s
	// attempt 2 after 1m0s
	// attempt 3 after 3m0s
	// attempt 4 after 7m0s
}

// The stage can run the program's own worker, with its middleware, queues and handlers.
func ExampleStage_worker() {
	t := &example{}
	defer t.end()
	newWorker := func(q *queue.Queue) *worker.Worker { // a function of the program
		w := worker.New(q, worker.Config{Queues: map[string]int{"images": 1}})
		worker.Handle(w, "render", render)
		return w
	}

	c := curfewtest.New(t)
	c.Worker = newWorker(c.Queue)
	c.Enqueue(queue.Task{Kind: "render", Queue: "images", MaxRetries: 1})
	c.Enqueue(queue.Task{Kind: "render"})
	c.DrainAll()
	for _, r := range c.Tasks("render") {
		fmt.Println(r.Queue, r.Status)
	}
	// Output:
	// images COMPLETED
	// default PENDING
}

// The clock can start in the past, and is the only one that deadlines use.
func ExampleConfig() {
	t := &example{}
	defer t.end()
	c := curfewtest.New(t, curfewtest.Config{
		Start:  time.Date(2024, 12, 31, 23, 59, 0, 0, time.UTC),
		Queue:  queue.Config{Partitions: 3},
		Worker: worker.Config{Strict: []string{"critical", "default"}},
	})
	r := c.Enqueue(queue.Task{Kind: "greet", Timeout: 2 * time.Minute})
	c.Advance(time.Minute)
	fmt.Println(c.Now().UTC(), r.Deadline.UTC())
	// Output:
	// 2025-01-01 00:00:00 +0000 UTC 2025-01-01 00:01:00 +0000 UTC
}
