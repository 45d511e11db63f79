// Command fanout runs tasks in parallel, and reports at a given time which are done. It cancels the others. Its
// arguments are how long each task takes:
//
//	go run ./examples/fanout -by 2s 100ms 300ms 1h
//
// The agent holds no goroutine while it waits. Redis and a reaper keep the limit, not a timer of this process.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// request is the payload of the agent.
type request struct {
	By    time.Time
	Tasks []time.Duration
}

func main() {
	by := flag.Duration("by", 2*time.Second, "report after this time at the latest")
	flag.Parse()
	asked := request{By: time.Now().Add(*by)}
	for _, arg := range flag.Args() {
		d, err := time.ParseDuration(arg)
		if err != nil {
			log.Fatalf("%q is not a duration such as 300ms", arg)
		}
		asked.Tasks = append(asked.Tasks, d)
	}
	rdb, err := queue.Connect(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	q, err := queue.Open(ctx, rdb, queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	w := worker.New(q, worker.Config{Queues: map[string]int{"fanout": 1}, Concurrency: len(asked.Tasks) + 1})
	worker.Handle(w, "work", work)
	agentwait.Handle(w, "fanout", fanout)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx); stop() }() // a worker that cannot run ends the wait for its report
	err = ask(ctx, q, asked)
	stop()
	if err := cmp.Or(<-ended, err); err != nil {
		log.Fatal(err)
	}
}

// ask starts the agent, and prints what it reports.
func ask(ctx context.Context, q *queue.Queue, asked request) error {
	payload, _ := json.Marshal(asked) // a time and numbers
	late := asked.By.Add(time.Minute) // the agent itself must end, too
	agent, err := q.Enqueue(ctx, queue.Task{Kind: "fanout", Queue: "fanout", Payload: payload, Deadline: late})
	if err != nil {
		return err
	}
	result, err := q.Result(ctx, agent.ID)
	if err != nil {
		return err
	}
	var lines []string
	err = json.Unmarshal(result, &lines)
	for n, line := range lines {
		fmt.Printf("task %d: %s\n", n+1, line)
	}
	return err
}

// fanout is the agent. It runs again from its beginning when the wait is over, and must then make the same wait. So
// a step stores the time left.
func fanout(a *agentwait.Agent, asked request) ([]string, error) {
	var futures []*agentwait.Future[string]
	for _, d := range asked.Tasks {
		futures = append(futures, agentwait.Schedule[string](a, d, queue.Task{Kind: "work", Queue: "fanout"}))
	}
	left, err := agentwait.Step(a, "time left", func(context.Context) (time.Duration, error) {
		return max(time.Until(asked.By), time.Millisecond), nil
	})
	if err != nil {
		return nil, err
	}
	settled, err := agentwait.JoinAllSettled(a.With(agentwait.Wait{Limit: left, Proceed: true}), futures...)
	if err != nil {
		return nil, err
	}
	lines := make([]string, len(futures))
	for n, o := range settled.Outcomes {
		if lines[n] = o.Value; o.Err != nil {
			lines[n] = "not done: " + o.Err.Error()
		}
	}
	return lines, nil
}

// work takes some time. Its context ends when the agent does not wait for it any more.
func work(ctx context.Context, d time.Duration) (string, error) {
	select {
	case <-time.After(d):
		return "done in " + d.String(), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
