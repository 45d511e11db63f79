// Command web is a web service that runs requests as tasks with a deadline. Its workers are in its process or others:
//
//	go run ./examples/web -role web -addr localhost:8080 &
//	go run ./examples/web -role worker &
//	id=$(curl -sS --fail-with-body -d Ada 'localhost:8080/greetings?timeout=10s')
//	curl -sS --fail-with-body "localhost:8080/greetings/$id?wait=5s"
//
// A task that ran out of time is answered with 504 and its deadline, and one that still runs after the wait with 202.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
	"github.com/curfew-dev/curfew/worker"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	role := flag.String("role", "", "web or worker; without it both")
	flag.Parse()
	signals, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	rdb, err := queue.Connect(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		log.Fatal(err)
	}
	q, err := queue.Open(signals, rdb, queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	w := worker.New(q, worker.Config{})
	w.HandleRaw("greet", greet)
	ctx, stop := context.WithCancelCause(signals) // if one of the two ends, so does the other
	var group sync.WaitGroup
	if *role != "worker" {
		group.Go(func() { stop(serve(ctx, q, *addr)) })
	}
	if *role != "web" {
		group.Go(func() { stop(w.Run(ctx)) })
	}
	group.Wait()
	if err := context.Cause(ctx); signals.Err() == nil && err != context.Canceled {
		log.Fatal(err)
	}
}

// greet is the work. Its context ends at the deadline of the task. Nobody knows how to greet "nobody".
func greet(ctx context.Context, name []byte) ([]byte, error) {
	if string(name) == "nobody" {
		<-ctx.Done()
	}
	return append([]byte("hello "), name...), ctx.Err()
}

func serve(ctx context.Context, q *queue.Queue, addr string) error {
	http.HandleFunc("POST /greetings", func(w http.ResponseWriter, r *http.Request) { post(w, r, q) })
	http.HandleFunc("GET /greetings/{id}", func(w http.ResponseWriter, r *http.Request) { get(w, r, q) })
	server := &http.Server{Addr: addr, ReadTimeout: 5 * time.Second}
	server.BaseContext = func(net.Listener) context.Context { return ctx } // whoever waits is answered when it ends
	closed := make(chan error, 1)
	go func() { <-ctx.Done(); closed <- server.Shutdown(context.Background()) }()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return <-closed // when the requests have been answered
}

func post(w http.ResponseWriter, r *http.Request, q *queue.Queue) {
	timeout, _ := time.ParseDuration(cmp.Or(r.URL.Query().Get("timeout"), "10s")) // 0 if it is not valid
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err != nil || timeout <= 0 {
		http.Error(w, "give a body of up to 64 KiB, and ?timeout= as 10s", http.StatusBadRequest)
		return
	}
	receipt, err := q.Enqueue(r.Context(), queue.Task{Kind: "greet", Payload: body, Timeout: timeout})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, receipt.ID)
}

func get(w http.ResponseWriter, r *http.Request, q *queue.Queue) {
	wait, _ := time.ParseDuration(cmp.Or(r.URL.Query().Get("wait"), "30s"))
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	result, err := q.Result(ctx, r.PathValue("id"))
	var late *queue.TaskTimedOutError
	switch {
	case wait <= 0:
		http.Error(w, "give ?wait= as 5s", http.StatusBadRequest)
	case err == nil:
		fmt.Fprintf(w, "%s\n", result)
	case errors.As(err, &late):
		http.Error(w, "it timed out at "+late.Deadline.UTC().Format(time.RFC3339Nano), http.StatusGatewayTimeout)
	case ctx.Err() != nil:
		http.Error(w, "it has not ended yet: ask again", http.StatusAccepted)
	case errors.Is(err, refusal.ErrNotFound) || errors.Is(err, refusal.ErrInvalid):
		http.Error(w, "there is no such task", http.StatusNotFound)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
