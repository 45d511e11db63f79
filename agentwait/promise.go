package agentwait

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Promise makes a child that no worker runs: somebody settles it by its id, with
// queue.Resolve or queue.Reject. It has a time out unless that is 0. Like any child it is
// there with the next wait, or after Start; tell its id to others after that.
func Promise[T any](a *Agent, name string, timeout time.Duration) *Future[T] {
	a.given()
	var err error
	if name != "" {
		err = checkName(name)
	}
	return &Future[T]{child: a.schedule(queue.Task{ID: name, Kind: "promise", Queue: a.job.Queue, Promise: true, Timeout: timeout}, err)}
}
