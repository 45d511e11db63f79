package agentwait

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Promise schedules a child that no worker runs. Another program settles it by its id, with
// queue.Resolve or queue.Reject. If timeout is not 0, the promise times out after it. Like any child,
// the promise is created by the next wait or Start: give its id to other programs after Start.
func Promise[T any](a *Agent, name string, timeout time.Duration) *Future[T] {
	a.given()
	var err error
	if name != "" {
		err = checkName(name)
	}
	return &Future[T]{child: a.schedule(queue.Task{ID: name, Kind: "promise", Queue: a.job.Queue, Promise: true, Timeout: timeout}, err)}
}
