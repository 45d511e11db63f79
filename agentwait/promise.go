package agentwait

import (
	"time"

	"github.com/curfew-dev/curfew/queue"
)

// Promise makes a child that no worker runs: somebody settles it by its id, with
// queue.Resolve or queue.Reject. It has a time out unless that is 0. Like any child it is
// there with the next wait, or after Start; tell its id to others after that.
func Promise[T any](a *Agent, name string, timeout time.Duration) *Future[T] {
	var err error
	if name != "" {
		err = checkName(name)
	}
	return &Future[T]{child: a.schedule(queue.Task{ID: name, Kind: "promise", Queue: a.job.Queue, Promise: true, Timeout: timeout}, err)}
}

// Signal is what somebody tells the agent by queue.Signal, under this name, now or
// earlier. Wait for it as for any child; no wait cancels it, so it may still come after one
// that went on without. So it takes no Within: use Wait.Limit, or Select it beside a task
// that is a Timer.
func Signal[T any](a *Agent, name string) *Future[T] {
	if a.named["s-"+name] { // asked for again: it is the same one
		return Child[T](a, "s-"+name)
	}
	err := queue.CheckSignal(name)
	return &Future[T]{child: a.schedule(queue.Task{ID: "s-" + name, Kind: "signal", Queue: a.job.Queue, Promise: true}, err)}
}
