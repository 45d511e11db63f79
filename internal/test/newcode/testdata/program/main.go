// Command program is a worker of refunds, whose code differs between three builds of it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/agentwait"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

// code is set by the linker: old waits for an approval, unfit schedules a child before it, and fit
// gives this child a name.
var code string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	q, err := queue.Open(ctx, redis.NewClient(options), queue.Config{Namespace: os.Getenv("CURFEW_NAMESPACE")})
	if err != nil {
		log.Fatal(err)
	}
	w := worker.New(q, worker.Config{})
	worker.Handle(w, "mail", func(context.Context, string) (string, error) { return "sent", nil })
	agentwait.Handle(w, "refund", refund)
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func refund(a *agentwait.Agent, order string) (string, error) {
	var notice []*agentwait.Future[string]
	switch code {
	case "unfit":
		notice = append(notice, agentwait.Schedule[string](a, order, queue.Task{Kind: "mail"}))
	case "fit":
		notice = append(notice, agentwait.Schedule[string](a, order, queue.Task{Kind: "mail", ID: "notice"}))
	}
	approved, err := agentwait.Await(a, agentwait.Promise[string](a, "approval", 12*time.Hour))
	if err != nil {
		return "", err
	}
	sent, err := agentwait.JoinAll(a, append(notice, agentwait.Schedule[string](a, order, queue.Task{Kind: "mail", ID: "last"}))...)
	return fmt.Sprint(code, ": ", approved, " ", sent), err
}
