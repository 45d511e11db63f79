package queue_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"github.com/curfew-dev/curfew/queue"
)

// provider is the TracerProvider of the program, from an OpenTelemetry SDK.
var provider trace.TracerProvider

func ExampleTracing() {
	ctx, rdb := context.Background(), redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	q, err := queue.Open(ctx, rdb, queue.Config{Tracing: queue.Tracing{Provider: provider}})
	if err != nil {
		log.Fatal(err)
	}
	// With the context of a request, the span of the enqueue belongs to the trace of the request.
	if _, err := q.Enqueue(ctx, queue.Task{Kind: "render"}); err != nil {
		log.Fatal(err)
	}
}
