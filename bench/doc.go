// Package bench measures Curfew: how fast tasks go in and out, how late a timeout
// is noticed, what a task takes in memory, and what it costs in round trips,
// commands and allocations; and the same of agents: how late one wakes, how many a second,
// what one costs, and its bytes while it waits. Micro tells what each call takes of Redis.
// Each measurement uses the library's defaults on a real Redis; what a figure means is in the
// comment of the function that takes it.
//
// Compare puts Curfew beside other job queues: each is a System, and Curfew, Asynq and
// Floor make those that are here. A program outside of this module adds its own by
// implementing the interface. What is measured is a Trial, for example ThroughputTrial, and the
// result is a Comparison, which Thresholds hold to limits.
package bench

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

// Figure is one measured value.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Report is what a benchmark found.
type Report struct {
	Bench   string   `json:"bench"`
	Figures []Figure `json:"figures"`
}

func (r *Report) add(name string, value float64, unit string) {
	r.Figures = append(r.Figures, Figure{name, value, unit})
}

// Value is a figure by its name, 0 if there is none.
func (r Report) Value(name string) float64 {
	for _, f := range r.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	return 0
}

// Median is the report whose figures are the medians of several runs.
func Median(runs []Report) Report {
	out := Report{Bench: runs[0].Bench}
	for i, f := range runs[0].Figures {
		values := make([]float64, len(runs))
		for j := range runs {
			values[j] = runs[j].Figures[i].Value
		}
		slices.Sort(values)
		f.Value = values[len(values)/2]
		out.Figures = append(out.Figures, f)
	}
	return out
}

// open empties the server and opens a namespace on it. The benchmarks own the
// server: the command refuses one that holds anything else.
func open(ctx context.Context, rdb redis.UniversalClient, partitions int) (*queue.Queue, error) {
	return openAs(ctx, rdb, queue.Config{Partitions: partitions})
}

func openAs(ctx context.Context, rdb redis.UniversalClient, config queue.Config) (*queue.Queue, error) {
	if err := rdb.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	config.Namespace, config.Logger = "bench", quiet
	return queue.Open(ctx, rdb, config)
}

// quiet logs errors only: that the servers measured on keep nothing on disk is known.
var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// payload is 100 random bytes, which no encoding makes smaller.
func payload() []byte { return randomBytes(100) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

func tasks(n int, one func(i int) queue.Task) []queue.Task {
	list := make([]queue.Task, n)
	for i := range list {
		list[i] = one(i)
	}
	return list
}

// noop is the usual task: a payload and a deadline.
func noop(int) queue.Task {
	return queue.Task{Kind: "noop", Payload: payload(), Timeout: time.Hour}
}

// fullTask uses most of what a task may have.
func fullTask(i int) queue.Task {
	return queue.Task{Kind: "noop", Payload: randomBytes(400), Timeout: time.Hour, QueueTimeout: 30 * time.Minute,
		AttemptTimeout: time.Minute, OnTimeout: queue.OnTimeoutRetry, MaxRetries: 3, Backoff: queue.Backoff{Exponential: true, Delay: time.Second, Max: time.Minute},
		Headers: map[string]string{"tenant": "acme", "traceparent": fmt.Sprintf("00-%032x-%016x-01", i, i)}}
}

// accepted checks that every task of a list went in.
func accepted(receipts []queue.Receipt, err error) error {
	if err != nil {
		return err
	}
	for i, r := range receipts {
		if r.Err != nil {
			return fmt.Errorf("task %d: %w", i, r.Err)
		}
	}
	return nil
}

// percentiles adds p50, p99 and max of lags in ms.
func (r *Report) percentiles(name string, lags []time.Duration) {
	if len(lags) == 0 {
		return
	}
	for i, value := range lagValues(lags) {
		r.add(name+" "+lagParts[i].name, value, "ms")
	}
}
