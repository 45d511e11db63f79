// Package curfewtest tests your own handlers, and the code that enqueues tasks for them, without a Redis
// and without waiting.
//
//	func TestRender(t *testing.T) {
//		c := curfewtest.New(t)
//		worker.Handle(c.Worker, "render", render)
//
//		r := c.Enqueue(queue.Task{Kind: "render", Payload: []byte(`{"page":"index"}`)})
//		c.Drain()
//		if got := string(c.MustComplete(r.ID)); got != `"index.png"` {
//			t.Errorf("render gave %s", got)
//		}
//	}
//
// [New] gives a test its own server in the process, a namespace on it, a worker, and a clock. All of them
// end with the test, so tests can be parallel. Everything else is real: the scripts that decide about tasks
// to a task, and the code that calls a handler with its middleware, recovers its panics, and evaluates its
// result.
//
// Nothing happens by itself. A task runs when the test calls [Stage.RunOne], [Stage.Drain] or
// [Stage.DrainAll]. It runs in the goroutine of the test, so a handler can use t, and the stack of a failure
// shows the test. Time passes when the test calls [Stage.Advance] or [Stage.DrainAll]: tasks that are due on
// the way start, end and are removed, each at its instant, as if a reaper ran all the time.
//
//	c.RunOne()                   // the handler fails with worker.RetryAfter(30*time.Second, err)
//	c.AssertStatus(r.ID, queue.Pending)
//	c.Advance(30 * time.Second)
//	c.RunOne()                   // its second attempt
//
// A handler can move the clock too: a handler that calls c.Advance(time.Minute) takes a minute. If its
// attempt is over by then, its context has ended when Advance returns, and Redis refuses its result, as in
// production. Agent.Now (package agentwait) returns the time of this clock.
//
// # A bubble has one clock
//
// In a bubble of [testing/synctest] the clock of the bubble is that of the stage: time.Now, timers, the limits
// of handlers and the scripts in Redis agree. A handler that blocks until its context ends takes no real time.
//
//	synctest.Test(t, func(t *testing.T) {
//		c := curfewtest.New(t)
//
// # What the clock does not move outside of a bubble
//
//   - time.Now, timers and time.Sleep in the code under test, and worker.Config.TaskTimeout,
//     which uses the clock of the machine.
//   - The real time that a handler has. Its context also ends when the time that was left at its start
//     is over on the clock of the machine. So a handler with a limit of 100 ms is cancelled in a
//     debugger, although the clock of the test does not move.
//
// # What the embedded server does not show
//
// The embedded server shows nothing about speed, memory limits, persistence or clusters.
// [Config.Client] runs the same test on a Redis.
package curfewtest
