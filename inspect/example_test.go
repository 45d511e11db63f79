package inspect_test

import (
	"context"
	"log"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/queue"
)

// start opens a namespace on a server in this process, so that the examples need no other one.
func start(ctx context.Context) (*queue.Queue, *curfewtest.Server) {
	server, err := curfewtest.Serve()
	if err != nil {
		log.Fatal(err)
	}
	q, err := queue.Open(ctx, server.Client(), queue.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return q, server
}
