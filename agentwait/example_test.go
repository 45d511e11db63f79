package agentwait_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

type (
	Question struct{ First, Second string }
	Page     struct{ Text string }
	Answer   struct{ Text string }
)

// perform runs one agent on an embedded server, and prints how it ended.
func perform(register func(w *worker.Worker), task queue.Task, outside ...func(q *queue.Queue, agent string)) {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	w := worker.New(q, worker.Config{})
	worker.Handle(w, "upper", func(_ context.Context, in string) (string, error) { return strings.ToUpper(in), nil })
	worker.Handle(w, "hang", func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	register(w)
	drained := make(chan error)
	go func() { drained <- w.Run(ctx) }()

	r, err := q.Enqueue(ctx, task)
	if err != nil {
		log.Fatal(err)
	}
	for _, do := range outside {
		do(q, r.ID)
	}
	result, err := q.Result(ctx, r.ID)
	fmt.Println(string(result), err)
	stop()
	<-drained
}

// This agent fetches from two sources, and uses the first page that it gets.
func Example() {
	perform(func(w *worker.Worker) {
		worker.Handle(w, "fetch", func(_ context.Context, url string) (Page, error) {
			if url == "down" {
				return Page{}, errors.New("503")
			}
			return Page{"the page of " + url}, nil
		})
		agentwait.Handle(w, "research", func(a *agentwait.Agent, in Question) (Answer, error) {
			first := agentwait.Schedule[Page](a, in.First, queue.Task{Kind: "fetch", Timeout: 5 * time.Second})
			second := agentwait.Schedule[Page](a, in.Second, queue.Task{Kind: "fetch"})
			page, err := agentwait.SelectOK(a, first, second)
			if err != nil {
				return Answer{}, err // also agentwait.ErrSuspended: the agent waits, and runs again later
			}
			return Answer{page.Value.Text}, nil
		})
	}, queue.Task{Kind: "research", Payload: []byte(`{"First": "down", "Second": "mirror"}`), Timeout: time.Minute})
	// Output: {"Text":"the page of mirror"} <nil>
}

// The results are in the order of the tasks, whichever ended first.
func ExampleJoinAll() {
	perform(func(w *worker.Worker) {
		agentwait.Handle(w, "shout", func(a *agentwait.Agent, words []string) (string, error) {
			var all []*agentwait.Future[string]
			for _, word := range words {
				all = append(all, agentwait.Schedule[string](a, word, queue.Task{Kind: "upper"}))
			}
			loud, err := agentwait.JoinAll(a, all...)
			return strings.Join(loud, " "), err
		})
	}, queue.Task{Kind: "shout", Payload: []byte(`["to", "be", "or"]`)})
	// Output: "TO BE OR" <nil>
}

// The agent uses the results after half a second, and the other tasks are cancelled.
func ExampleJoinAllSettled() {
	perform(func(w *worker.Worker) {
		agentwait.Handle(w, "enrich", func(a *agentwait.Agent, in string) (string, error) {
			s, err := agentwait.JoinAllSettled(a.With(agentwait.Wait{Limit: 500 * time.Millisecond, Proceed: true}),
				agentwait.Schedule[string](a, in, queue.Task{Kind: "upper"}),
				agentwait.Schedule[string](a, in, queue.Task{Kind: "hang"}))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s, %d cancelled", s.Completed[0].Value, len(s.Cancelled)), nil
		})
	}, queue.Task{Kind: "enrich", Payload: []byte(`"sun"`)})
	// Output: "SUN, 1 cancelled" <nil>
}

// The effect happens once, however often the agent runs.
func ExampleStep() {
	perform(func(w *worker.Worker) {
		agentwait.Handle(w, "order", func(a *agentwait.Agent, _ string) (string, error) {
			key := fmt.Sprint(a.Rand().Uint64()) // the same in each run
			receipt, err := agentwait.Step(a, "charge", func(ctx context.Context) (string, error) {
				fmt.Println("charged, with a key:", key != "")
				return "receipt", nil
			})
			if err != nil {
				return "", err
			}
			return agentwait.Run[string](a, receipt, queue.Task{Kind: "upper"})
		})
	}, queue.Task{Kind: "order"})
	// Output:
	// charged, with a key: true
	// "RECEIPT" <nil>
}

// The agent waits for the decision of a person. It uses no worker while it waits.
func ExampleSignal() {
	perform(func(w *worker.Worker) {
		agentwait.Handle(w, "publish", func(a *agentwait.Agent, _ string) (string, error) {
			ok, err := agentwait.Await(a.With(agentwait.Wait{Limit: 24 * time.Hour}), agentwait.Signal[bool](a, "approval"))
			var late *agentwait.WaitTimeoutError
			if errors.As(err, &late) {
				return "no decision", nil
			}
			return fmt.Sprint("approved: ", ok), err
		})
	}, queue.Task{Kind: "publish"}, func(q *queue.Queue, agent string) {
		if _, err := q.Signal(context.Background(), agent, "approval", []byte("true")); err != nil {
			log.Fatal(err)
		}
	})
	// Output: "approved: true" <nil>
}

// Two of three branches are enough; their results are merged.
func ExampleSynchronize() {
	perform(func(w *worker.Worker) {
		agentwait.Handle(w, "vote", func(a *agentwait.Agent, _ string) (json.RawMessage, error) {
			return agentwait.Synchronize(a, agentwait.Sync{M: 2, Merge: agentwait.Merge{Strategy: agentwait.KeyedByBranch, Target: "state.results"}},
				agentwait.Schedule[json.RawMessage](a, "aye", queue.Task{Kind: "upper"}),
				agentwait.Schedule[json.RawMessage](a, "nay", queue.Task{Kind: "hang", Timeout: time.Minute}),
				agentwait.Schedule[json.RawMessage](a, "aye", queue.Task{Kind: "upper"}))
		})
	}, queue.Task{Kind: "vote"})
	// Output: {"state":{"results":{"0":"AYE","2":"AYE"}}} <nil>
}

// Each run of a long agent begins with the state of its last Checkpoint.
func ExampleAgent_Checkpoint() {
	type state struct{ Round, Sum int }
	perform(func(w *worker.Worker) {
		worker.Handle(w, "square", func(_ context.Context, n int) (int, error) { return n * n, nil })
		agentwait.Handle(w, "series", func(a *agentwait.Agent, rounds int) (int, error) {
			var s state
			if _, err := a.Restore(&s); err != nil {
				return 0, err
			}
			for s.Round < rounds {
				v, err := agentwait.Run[int](a, s.Round+1, queue.Task{Kind: "square"})
				if err != nil {
					return 0, err
				}
				s = state{s.Round + 1, s.Sum + v}
				if err := a.Checkpoint(s); err != nil {
					return 0, err
				}
			}
			return s.Sum, nil
		})
	}, queue.Task{Kind: "series", Payload: []byte("3")})
	// Output: 14 <nil>
}
