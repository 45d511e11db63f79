package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

type Render struct{ Page string }

type URL string

func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	q, err := queue.Open(ctx, rdb, queue.Config{})
	if err != nil {
		log.Fatal(err)
	}

	w := worker.New(q, worker.Config{
		Concurrency: 50,
		Queues:      map[string]int{"critical": 6, "default": 3, "low": 1},
		TaskTimeout: 5 * time.Minute,
	})
	worker.Handle(w, "render", func(ctx context.Context, in Render) (URL, error) {
		return URL("https://example.com/" + in.Page + ".png"), nil
	})
	if err := w.Run(ctx); err != nil { // returns when ctx has ended and the handlers have finished
		log.Fatal(err)
	}
}

// A handler takes and returns JSON. The example uses the embedded server, so it runs in one process.
func ExampleHandle() {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}

	w := worker.New(q, worker.Config{})
	worker.Handle(w, "render", func(ctx context.Context, in Render) (URL, error) {
		return URL(in.Page + ".png"), nil
	})
	running, stop := context.WithCancel(ctx)
	drained := make(chan error)
	go func() { drained <- w.Run(running) }()

	r, err := q.Enqueue(ctx, queue.Task{Kind: "render", Payload: []byte(`{"Page": "index"}`), Timeout: 30 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	result, err := q.Result(ctx, r.ID)
	fmt.Println(string(result), err)
	stop()
	fmt.Println(<-drained)
	// Output:
	// "index.png" <nil>
	// <nil>
}

// The error of a handler decides what happens to its task.
func ExampleHandler() {
	var _ worker.Handler = func(ctx context.Context, payload []byte) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, string(payload), nil)
		if err != nil {
			return nil, worker.Discard(err) // a retry cannot help
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err // the task runs again if it has a retry left
		}
		defer resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return []byte(resp.Status), nil
		case http.StatusTooManyRequests:
			return nil, worker.RetryAfter(time.Minute, errors.New(resp.Status))
		case http.StatusServiceUnavailable:
			return nil, worker.Release(10 * time.Second) // the task is not at fault, and spends no retry
		}
		return nil, worker.Fail(resp.StatusCode, errors.New(resp.Status))
	}
}

// The epoch is a fencing token: a store that remembers the greatest epoch it has seen can refuse an
// older attempt.
func ExampleInfo() {
	var store interface {
		PutIfNewer(key string, token int64, value []byte) error
	}
	var _ worker.Handler = func(ctx context.Context, payload []byte) ([]byte, error) {
		job := worker.Info(ctx)
		return nil, store.PutIfNewer(job.ID, job.Epoch, payload)
	}
}

// The next heartbeat writes the note to the task's record, where other programs read it.
func ExampleProgress() {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}

	w := worker.New(q, worker.Config{})
	worker.Handle(w, "print", func(ctx context.Context, pages int) (string, error) {
		for n := 1; n <= pages; n++ {
			worker.Progress(ctx, fmt.Sprintf("page %d of %d", n, pages))
		}
		return "printed", nil
	})
	r, err := q.Enqueue(ctx, queue.Task{Kind: "print", Payload: []byte("12")})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := w.RunOne(ctx); err != nil { // for tests; a program calls Run
		log.Fatal(err)
	}
	task, err := q.Get(ctx, r.ID)
	fmt.Println(task.Status, task.Progress, err)
	// Output: COMPLETED page 12 of 12 <nil>
}

// The cause of the context tells a handler why it must stop.
func ExampleErrShutdown() {
	var _ worker.Handler = func(ctx context.Context, payload []byte) ([]byte, error) {
		<-ctx.Done()
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, worker.ErrShutdown):
			return nil, cause // the task is given back, and spends no retry
		case errors.Is(cause, worker.ErrTimeout):
			return nil, cause // its time is up
		case errors.Is(cause, worker.ErrCancelled), errors.Is(cause, worker.ErrClaimLost):
			return nil, cause // Redis no longer accepts a report
		}
		return nil, ctx.Err()
	}
}

// Middleware wraps all handlers. The first middleware is the outermost.
func ExampleWorker_Use() {
	timing := func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, payload []byte) ([]byte, error) {
			start := time.Now()
			result, err := next(ctx, payload)
			log.Println(worker.Info(ctx).Kind, time.Since(start), err)
			return result, err
		}
	}
	setUp := func(w *worker.Worker) { w.Use(timing) }
	_ = setUp
}
