//go:build unix

package command_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/curfew-dev/curfew/internal/command"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// BenchmarkCommands runs /bin/true for each task, 10 at a time:
//
//	go test ./internal/command -run '^$' -bench . -benchtime 5000x
func BenchmarkCommands(b *testing.B) {
	b.Setenv(guardVariable, "yes")
	guard, err := command.StartGuard(slog.New(slog.DiscardHandler), nil, os.Args[0])
	if err != nil {
		b.Fatal(err)
	}
	defer guard.Close()
	c := command.NewCommand("/bin/true")
	c.Guard = guard
	drain(b, c.Handle)
}

// BenchmarkRequests sends each task to a server in this process, 10 at a time.
func BenchmarkRequests(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	defer server.Close()
	s := newStage(b)
	drain(b, s.post(server.URL).Handle)
}

// drain measures how long a worker of 10 slots takes for b.N tasks.
func drain(b *testing.B, handle worker.Handler) {
	s := newStage(b)
	tasks := make([]queue.Task, b.N)
	for i := range tasks {
		tasks[i] = queue.Task{Kind: "k", Payload: []byte(`{"width": 800}`)}
	}
	for chunk := range slices.Chunk(tasks, 1000) {
		receipts, err := s.q.EnqueueAll(b.Context(), chunk)
		if err != nil || receipts[0].Err != nil {
			b.Fatal(err, receipts[0].Err)
		}
	}
	done := make(chan struct{}, b.N)
	w := worker.New(s.q, worker.Config{Concurrency: 10})
	w.HandleRaw("k", func(ctx context.Context, payload []byte) ([]byte, error) {
		defer func() { done <- struct{}{} }()
		result, err := handle(ctx, payload)
		if err != nil {
			b.Error(err)
		}
		return result, err
	})
	b.ResetTimer()
	stop := s.run(w)
	for range b.N {
		<-done
	}
	stop()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}
