package agentwait

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Promise schedules a child that no worker runs. Another program settles it by its id, with
// queue.Resolve or queue.Reject. A result that is not of type T is refused, as queue.ResultTypeOf
// says; a []byte takes any bytes. A timeout that is not 0 limits this. The next wait or Start creates
// the promise, like any child: pass its id to other programs after Start.
func Promise[T any](a *Agent, name string, timeout time.Duration) *Future[T] {
	a.mustAgent()
	var err error
	if name != "" {
		err = checkName(name)
	}
	return &Future[T]{child: a.schedule(queue.Task{ID: name, Kind: "promise", Queue: a.job.Queue, Promise: true, Timeout: timeout, ResultType: queue.ResultTypeOf[T]()}, err)}
}
