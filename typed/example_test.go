package typed_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/typed"
	"github.com/curfew-dev/curfew/worker"
)

type (
	ResizeArgs   struct{ URL string }
	ResizeResult struct{ Bytes int }
)

var Resize = typed.Kind[ResizeArgs, ResizeResult]{
	Name:     "resize",
	Defaults: queue.Defaults{Timeout: time.Minute, MaxRetries: 3},
}

var Album = typed.Kind[[]ResizeArgs, int]{Name: "album"}

func resize(_ context.Context, in ResizeArgs) (ResizeResult, error) {
	return ResizeResult{Bytes: 100 * len(in.URL)}, nil
}

// album is an agent: it waits for tasks of its own.
func album(a *agentwait.Agent, in []ResizeArgs) (sum int, err error) {
	var pages []*agentwait.Future[ResizeResult]
	for _, args := range in {
		pages = append(pages, Resize.Schedule(a, args))
	}
	all, err := agentwait.JoinAll(a, pages...)
	for _, page := range all {
		sum += page.Bytes
	}
	return sum, err
}

// start opens a namespace on an embedded server and runs a worker on it. Your program calls
// queue.Connect("redis://localhost:6379").
func start() (ctx context.Context, q *queue.Queue, stop func()) {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	q, err = queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	w := worker.New(q, worker.Config{})
	Resize.Handle(w, resize)
	Album.HandleAgent(w, album)
	drained := make(chan error)
	go func() { drained <- w.Run(ctx) }()
	return ctx, q, func() { cancel(); <-drained; server.Close() }
}

func Example() {
	ctx, q, stop := start()
	defer stop()

	r, err := Resize.Enqueue(ctx, q, ResizeArgs{URL: "a.png"})
	if err != nil {
		log.Fatal(err)
	}
	out, err := Resize.Result(ctx, q, r.ID)
	fmt.Println(out.Bytes, err)
	// Output: 500 <nil>
}

func ExampleKind_Run() {
	ctx, q, stop := start()
	defer stop()

	out, err := Resize.Run(ctx, q, ResizeArgs{URL: "a.png"})
	fmt.Println(out.Bytes, err)
	// Output: 500 <nil>
}

// The first task of a kind has its defaults, even if no worker has started yet.
func ExampleKind_Enqueue() {
	ctx, q, stop := start()
	defer stop()

	r, err := Resize.Enqueue(ctx, q, ResizeArgs{URL: "a.png"})
	if err != nil {
		log.Fatal(err)
	}
	record, err := q.Get(ctx, r.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Deadline.Sub(record.CreatedAt), record.MaxRetries)
	// Output: 1m0s 3
}

// A task with a name has an id that every program can compute. A second task of the name is a repeat.
func ExampleKind_With() {
	ctx, q, stop := start()
	defer stop()

	photo := Resize.With(queue.Task{Name: "photo-17", Timeout: time.Hour})
	first, err := photo.Enqueue(ctx, q, ResizeArgs{URL: "17.png"})
	fmt.Println(first.ID, first.New, err)
	again, err := photo.Enqueue(ctx, q, ResizeArgs{URL: "17.png"})
	fmt.Println(again.ID, again.New, err)
	out, err := Resize.Result(ctx, q, q.IDOf("photo-17"))
	fmt.Println(out.Bytes, err)
	// Output:
	// 0-n-photo-17 true <nil>
	// 0-n-photo-17 false <nil>
	// 600 <nil>
}

func ExampleKind_EnqueueAll() {
	ctx, q, stop := start()
	defer stop()

	receipts, err := Resize.EnqueueAll(ctx, q, []ResizeArgs{{URL: "a.png"}, {URL: "bb.png"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range receipts {
		out, err := Resize.Result(ctx, q, r.ID)
		fmt.Println(out.Bytes, err)
	}
	// Output:
	// 500 <nil>
	// 600 <nil>
}

// Tasks of several kinds, and with settings of their own, are enqueued as one list.
func ExampleKind_Task() {
	ctx, q, stop := start()
	defer stop()

	if err := Resize.Define(ctx, q); err != nil {
		log.Fatal(err)
	}
	one, err := Resize.With(queue.Task{Priority: 3}).Task(ResizeArgs{URL: "a.png"})
	if err != nil {
		log.Fatal(err)
	}
	two, err := Album.Task([]ResizeArgs{{URL: "a.png"}})
	if err != nil {
		log.Fatal(err)
	}
	receipts, err := q.EnqueueAll(ctx, []queue.Task{one, two})
	fmt.Println(len(receipts), string(one.Payload), string(two.Payload), err)
	// Output: 2 {"URL":"a.png"} [{"URL":"a.png"}] <nil>
}

// Define replaces the defaults that are stored, as a worker does when it starts.
func ExampleKind_Define() {
	ctx, q, stop := start()
	defer stop()

	err := Resize.Define(ctx, q)
	kinds, _ := q.Kinds(ctx)
	fmt.Println(kinds["resize"]["timeout_ms"], err)
	// Output: 60000 <nil>
}

func ExampleKind_Result() {
	ctx, q, stop := start()
	defer stop()

	r, err := Resize.Enqueue(ctx, q, ResizeArgs{URL: "a.png"})
	if err != nil {
		log.Fatal(err)
	}
	out, err := Resize.Result(ctx, q, r.ID)
	fmt.Println(out.Bytes, err)
	// Output: 500 <nil>
}

func ExampleKind_Handle() {
	ctx, q, stop := start() // it has called Resize.Handle(w, resize)
	defer stop()

	out, err := Resize.Run(ctx, q, ResizeArgs{URL: "photo.png"})
	fmt.Println(out.Bytes, err)
	// Output: 900 <nil>
}

// An agent schedules children of typed kinds and gets their results as values.
func ExampleKind_Schedule() {
	ctx, q, stop := start() // it has called Album.HandleAgent(w, album), and album calls Resize.Schedule
	defer stop()

	sum, err := Album.Run(ctx, q, []ResizeArgs{{URL: "a.png"}, {URL: "bb.png"}})
	fmt.Println(sum, err)
	// Output: 1100 <nil>
}

func ExampleKind_HandleAgent() {
	ctx, q, stop := start() // it has called Album.HandleAgent(w, album)
	defer stop()

	sum, err := Album.Run(ctx, q, nil)
	fmt.Println(sum, err)
	// Output: 0 <nil>
}
