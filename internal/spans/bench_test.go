package spans_test

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/worker"
)

// settings are those whose cost is measured. Spans are made by the SDK and then dropped, and log lines are made and then dropped.
var settings = []struct {
	name   string
	config func() queue.Config
}{
	{"no figures", func() queue.Config { return queue.Config{Figures: "off"} }},
	{"off", func() queue.Config { return queue.Config{} }}, // neither log nor spans
	{"log", func() queue.Config { return queue.Config{Logger: slog.New(slog.NewJSONHandler(io.Discard, nil))} }},
	{"not sampled", func() queue.Config {
		return queue.Config{Tracing: queue.Tracing{Provider: sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))}}
	}},
	{"on", func() queue.Config { return queue.Config{Tracing: queue.Tracing{Provider: kept()}} }},
	{"on, each in a batch", func() queue.Config { return queue.Config{Tracing: queue.Tracing{Provider: kept(), EachInBatch: true}} }},
}

func kept() *sdk.TracerProvider {
	return sdk.NewTracerProvider(sdk.WithBatcher(tracetest.NewNoopExporter()))
}

// cpu returns the CPU time of Redis so far, in µs.
func cpu(b *testing.B, rdb *redis.Client) (total float64) {
	b.Helper()
	info, err := rdb.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user_main_thread" || name == "used_cpu_sys_main_thread" {
			seconds, _ := strconv.ParseFloat(value, 64)
			total += seconds * 1e6
		}
	}
	return total
}

// One run says little on a machine that does other work, too. The medians of five runs, and how far the runs differ:
//
//	go test ./internal/spans -run '^$' -bench . -benchtime 20000x -count 5 | scripts/medians

// measure runs a benchmark for each setting, on a server of its own, and reports the time of Redis for each task.
func measure(b *testing.B, run func(b *testing.B, q *queue.Queue)) {
	for _, setting := range settings {
		b.Run(setting.name, func(b *testing.B) {
			rdb := redistest.Start(b).Client(b)
			config := setting.config()
			if config.Logger == nil {
				config.Logger = slog.New(slog.DiscardHandler)
			}
			q, err := queue.Open(b.Context(), rdb, config)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			was := cpu(b, rdb)
			run(b, q)
			b.ReportMetric((cpu(b, rdb)-was)/float64(b.N), "redis-µs/op")
		})
	}
}

// BenchmarkEnqueue enqueues tasks one by one from 16 goroutines.
func BenchmarkEnqueue(b *testing.B) {
	measure(b, func(b *testing.B, q *queue.Queue) {
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := q.Enqueue(b.Context(), queue.Task{Kind: "k", Payload: []byte(`{"page":"index"}`)}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkEnqueueAll enqueues tasks in batches of 500.
func BenchmarkEnqueueAll(b *testing.B) {
	measure(b, enqueueAll)
}

func enqueueAll(b *testing.B, q *queue.Queue) {
	tasks := make([]queue.Task, 500)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Payload: []byte(`{"page":"index"}`)}
	}
	for n := b.N; n > 0; n -= len(tasks) {
		if _, err := q.EnqueueAll(b.Context(), tasks[:min(n, len(tasks))]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWork enqueues tasks in batches and runs them.
func BenchmarkWork(b *testing.B) {
	measure(b, func(b *testing.B, q *queue.Queue) {
		ctx, cancel := context.WithCancel(b.Context())
		var left sync.WaitGroup
		left.Add(b.N)
		w := worker.New(q, worker.Config{Concurrency: 16, NoReaper: true, Logger: q.Logger()})
		w.HandleRaw("k", func(context.Context, []byte) ([]byte, error) {
			left.Done()
			return nil, nil
		})
		enqueueAll(b, q)
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		left.Wait()
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkTimeout enqueues tasks with deadlines and times them out.
func BenchmarkTimeout(b *testing.B) {
	measure(b, func(b *testing.B, q *queue.Queue) {
		batch := 100
		for n := b.N; n > 0; n -= batch {
			tasks := make([]queue.Task, min(n, batch))
			for i := range tasks {
				tasks[i] = queue.Task{Kind: "k", Timeout: time.Millisecond}
			}
			if _, err := q.EnqueueAll(b.Context(), tasks); err != nil {
				b.Fatal(err)
			}
			for left := len(tasks); left > 0; {
				swept, err := reaper.Sweep(b.Context(), q, 0, "r", 100, time.Second)
				if err != nil {
					b.Fatal(err)
				}
				left -= swept.TimedOut
			}
		}
	})
}
