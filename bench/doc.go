// Package bench measures Curfew: how many tasks a second it enqueues and completes, how late a
// timeout is noticed, and the memory, round trips, commands and allocations per task. For
// agents it measures the delay of a wakeup, the number that complete in a second, and the cost and
// memory per agent. For runs of flows it measures the number that complete in a second, the time
// between two nodes, and the cost per node. Micro measures the time of Redis that each call takes. Measurements use the library's
// defaults on a real Redis. The comment of a function explains its figures.
//
// A function with a client as its parameter removes all data of the server. So use a server that
// has no other purpose, for example from StartRedis.
//
// Compare compares Curfew with other job queues. Each of them is a System. Curfew, Asynq
// and Floor return the ones in this package. A program outside of this module adds its own by
// implementing System. A Trial, for example ThroughputTrial, selects the measurement. The result
// is a Comparison, and a Threshold is a limit for one of its figures.
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

// Report is the result of a benchmark.
type Report struct {
	Bench   string   `json:"bench"`
	Redis   string   `json:"redis,omitempty"` // the server's version, if the caller has set it
	Figures []Figure `json:"figures"`
}

func (r *Report) add(name string, value float64, unit string) {
	r.Figures = append(r.Figures, Figure{name, value, unit})
}

// Value returns the value of the named figure, or 0 if there is none.
func (r Report) Value(name string) float64 {
	f, _ := r.find(name)
	return f.Value
}

func (r Report) find(name string) (Figure, bool) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

// Median returns a report with the median of each figure. Of an even number of runs it takes the
// larger of the two in the middle. There must be at least one run, and all must have the same figures.
func Median(runs []Report) Report {
	out := Report{Bench: runs[0].Bench, Redis: runs[0].Redis}
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

// open empties the server and opens a namespace on it.
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

// quiet logs errors only. The warning that a server has no persistence is expected here.
var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))

// payload returns 100 random bytes, which no encoding makes smaller.
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

// noop returns the usual task, with a payload and a deadline.
func noop(int) queue.Task {
	return queue.Task{Kind: "noop", Payload: payload(), Timeout: time.Hour}
}

// fullTask returns a task that uses most options.
func fullTask(i int) queue.Task {
	return queue.Task{Kind: "noop", Payload: randomBytes(400), Timeout: time.Hour, QueueTimeout: 30 * time.Minute,
		AttemptTimeout: time.Minute, OnTimeout: queue.OnTimeoutRetry, MaxRetries: 3, Backoff: queue.Backoff{Exponential: true, Delay: time.Second, Max: time.Minute},
		Headers: map[string]string{"tenant": "acme", "traceparent": fmt.Sprintf("00-%032x-%016x-01", i, i)}}
}

// accepted returns the first error in a list of receipts.
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
