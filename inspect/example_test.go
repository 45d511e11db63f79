package inspect_test

import (
	"context"
	"log"

	"github.com/curfew-dev/curfew/internal/embedded"
	"github.com/curfew-dev/curfew/queue"
)

// start opens a namespace on the embedded server, which keeps the examples in one process.
func start(ctx context.Context) (*queue.Queue, *embedded.Server) {
	server, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return q, server
}
