// Package agentwait is for agents: tasks whose handlers wait for child tasks.
//
//	agentwait.Handle(w, "research", func(a *agentwait.Agent, in Question) (Answer, error) {
//		first := agentwait.Schedule[Page](a, in.First, queue.Task{Kind: "fetch", Timeout: 5 * time.Second})
//		second := agentwait.Schedule[Page](a, in.Second, queue.Task{Kind: "fetch", Timeout: 5 * time.Second})
//		page, err := agentwait.SelectOK(a, first, second)
//		if err != nil {
//			return Answer{}, err // ErrSuspended too
//		}
//		…
//	})
//
// A waiting agent uses no worker, no goroutine and no connection. Its wait is a record in Redis with
// counters. The script that ends a member updates the counters. The end that decides the wait puts
// the agent in line again, once, and any worker can run it. Reapers enforce the limits of a wait; no
// other process has to run for them.
//
// # How an agent continues
//
// A wait that is not over returns ErrSuspended, and the handler must return that error. When the wait
// is over, the handler is called again, from the beginning. It makes the same wait again, and the wait
// now returns its result. The result is stored, so each later run gets the same. The children are the
// same too: they are identified by their number or by the name that they were given. So the handler
// must be deterministic between its calls of this package. Use Step for an effect that must happen
// once, and Now and Rand for the time and random numbers. After a Checkpoint, the next run begins with
// its state, and the journal before it is dropped.
//
// If a run of the handler makes other calls than the run before, its error is ErrReplayDiverged, which
// says what the earlier run did and what this one does. This happens when new code runs agents that
// were started with old code. The agent is not failed. It is given back until a worker
// takes it whose program can replay it. To avoid this, name the children, make a Checkpoint before the part that changes, or
// put a version field into the input. To find it before a deploy, replay a Recording of the agent with
// the new code.
//
// # Functions
//
// There are few functions. A Wait adjusts them: pass a.With(agentwait.Wait{…}) instead of a.
//
//	wait for all, in the order given; the first error if one fails   JoinAll(a, f...)
//	return as soon as one fails                                      JoinAll(a.With(Wait{FailFast: true}), f...)
//	with a timeout; pending tasks are cancelled                      JoinAll(a.With(Wait{Limit: 30 * time.Second}), f...)
//	with individual timeouts                                         JoinAllSettled(a, f.Within(5*time.Second), g.Within(2*time.Second))
//	all outcomes, without an error                                   JoinAllSettled(a, f...) and its Outcomes
//	completed, failed and cancelled tasks in separate lists          JoinAllSettled(a, f...) and its lists
//	leave out cancelled tasks                                        s.SkipCancelled() of JoinAllSettled(a, f...)
//	best effort within 5 s                                           JoinAllSettled(a.With(Wait{Limit: 5 * time.Second, Proceed: true}), f...)
//	the first to end; the others are cancelled                       Select(a, f...)
//	the first to end; the others continue and are returned           Select(a.With(Wait{Losers: KeepLosers}), f...) and its Rest
//	the first to complete                                            SelectOK(a, f...)
//	n that complete                                                  JoinN(a, n, f...)
//	n that complete, or all if they are fewer                        JoinN(a.With(Wait{Clamp: true}), n, f...)
//	n that end                                                       JoinNSettled(a, n, f...)
//	the outcomes so far, without waiting                             Peek(a, f...)
//	one task                                                         Await(a, f)
//	one task, with a timeout                                         Await(a.With(Wait{Limit: 2 * time.Second}), f)
//	schedule one task and wait for it                                Run[T](a, in, queue.Task{Kind: "k"})
//	tasks of several types                                           AwaitAll(a, f, g), then Value(a, f)
//	continue although one fails                                      JoinAll(a, f, g.ContinueOn(OnError|OnTimeout))
//	a synchronization point with a merge                             Synchronize(a, Sync{M: 2, Merge: Merge{Strategy: Append}}, f...)
//	a time                                                           Sleep(a, d)
//	a decision from outside, by the id of a child                    Await(a, Promise[T](a, "approval", time.Hour))
//	a message from outside, by the agent's id and a name             Await(a.With(Wait{Limit: time.Hour}), Signal[T](a, "go"))
//	the next message, if one could not be decoded                    errors.As(err, &bad) of *BadSignalError, then NextSignal(a, f)
//	cancel one, many or all                                          Cancel(a, "why", f...)
//	cancel tasks of several types                                    CancelAll(a, "why", f, g)
//	start children without waiting                                   a.Start()
//	a list of children, with one queue for all                       ScheduleAll[T](a, "pages", Entry{…}, Entry{…})
//	part of the time that the agent has left                         Schedule[T](a, in, queue.Task{Kind: "k", Budget: 0.5})
//
// # How long a child continues
//
// A child ends with its owner. Some waits let members continue that they no longer need (KeepLosers,
// KeepPending, JoinN, SelectOK, Synchronize). Such a child, and a child that was only started,
// continues until the agent ends: it returns a result, or an error that is not retried. A child that
// has not ended by then is cancelled with the error "Owner ended". If you need the result of a child,
// wait for it. If a task must outlive the agent, enqueue it in a Step: then it is not a child.
//
// # Errors
//
// The error of a child that failed is a *queue.TaskFailedError. That of a child that timed out is a
// *queue.TaskTimedOutError and context.DeadlineExceeded. That of a cancelled child is
// ErrTaskCancelled.
//
// A wait that reaches its limit returns a *WaitTimeoutError. With Proceed it continues with the tasks
// that have completed, and returns a *WaitTimeoutError only if none has. A wait for one success that
// can no longer come returns an *AllTasksFailedError, a wait for n successes a *WaitImpossibleError.
//
// An invalid argument is refusal.ErrInvalid, and a task that is not a child of the agent is
// ErrNotOwner. In both cases nothing was changed.
//
// If Redis is away or full, the agent is given back and runs again a second later. That spends no
// retry.
package agentwait
