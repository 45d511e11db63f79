// Package curfewtest is for testing your own handlers, and the code that enqueues
// for them, without a Redis and without waiting.
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
// [New] gives a test a server of its own in its process, a namespace on it, a worker,
// and a clock. All of it ends with the test, so tests may be parallel. What is real is
// everything else: the scripts that decide what becomes of a task, and the code that
// calls a handler with its middleware, takes its panics, and judges what it returns.
//
// Nothing happens by itself. A task runs when the test says [Stage.RunOne],
// [Stage.Drain] or [Stage.DrainAll], in the goroutine of the test, so that a handler may
// use t, and a failure has the stack that led to it. Time passes when the test says
// [Stage.Advance]: what is due on the way ends, starts and goes, each at its instant,
// as if a reaper had been awake all the time.
//
//	c.RunOne()                   // the handler fails with worker.RetryAfter(30*time.Second, err)
//	c.AssertStatus(r.ID, queue.Pending)
//	c.Advance(30 * time.Second)
//	c.RunOne()                   // its second attempt
//
// A handler may move the clock too: c.Advance(time.Minute) in a handler is one that
// takes a minute. When its attempt is over by that clock its context has ended when
// Advance returns, and what it reports is refused, as it would be. Now of an agent
// (package agentwait) is this clock's.
//
// # What this clock does not move
//
//   - time.Now, timers and time.Sleep in the code under test, and worker.Config.TaskTimeout,
//     which goes by them.
//   - The real time that a handler has. Its context also ends when the time that it had
//     left at its start is over on the machine's clock: one with a limit of 100 ms, in a
//     debugger, is cancelled although the test's clock stands still.
//
// # What this server is not
//
// The embedded server is no evidence for speed, memory limits, persistence or a
// cluster. [Config.Client] runs the same test on a Redis.
package curfewtest
