// Package agentwait is for agents: tasks whose handlers wait for tasks of their own.
//
//	agentwait.Handle(w, "research", func(a *agentwait.Agent, in Question) (Answer, error) {
//		one := agentwait.Schedule[Page](a, in.First, queue.Task{Kind: "fetch", Timeout: 5 * time.Second})
//		two := agentwait.Schedule[Page](a, in.Second, queue.Task{Kind: "fetch", Timeout: 5 * time.Second})
//		page, err := agentwait.SelectOK(a, one, two)
//		if err != nil {
//			return Answer{}, err // ErrSuspended too
//		}
//		…
//	})
//
// An agent that waits holds no worker, no goroutine and no connection: the wait is a
// record in Redis, with counters that each end of a member changes in the script that
// writes it. The one that decides puts the agent in line again, once, and it goes on
// wherever a worker is free. Limits of a wait are kept by the reapers; nothing has to be
// alive for them.
//
// # How an agent goes on
//
// A wait that has no answer yet returns ErrSuspended, which the handler must return.
// Later the handler is called again, from the beginning, and comes to the same wait; now
// it has its answer, which is stored and always the same, as are the children: they are
// known by their count, or by the names that they were given. So between its calls of
// this package a handler must do the same again. What is not so by itself goes through
// Step (an effect, once), Now and Rand. Checkpoint moves the beginning: the next run
// starts with its state, and what was remembered before is forgotten.
//
// A handler that does something else than before ends its agent with ErrReplayDiverged,
// which says what was and what is. That happens when new code meets agents under way:
// names of children, a Checkpoint before the part that changes, or a version field in the
// input keep them apart.
//
// # What is there
//
// Few functions, and a Wait that adjusts them: a.With(agentwait.Wait{…}) in place of a.
//
//	wait for all, in the order given; the first error if one fails   JoinAll(a, f...)
//	as soon as one fails                                             JoinAll(a.With(Wait{FailFast: true}), f...)
//	with a timeout: what has not ended is cancelled                  JoinAll(a.With(Wait{Limit: 30 * time.Second}), f...)
//	with individual timeouts                                         JoinAllSettled(a, f.Within(5*time.Second), g.Within(2*time.Second))
//	all outcomes, no error for any                                   JoinAllSettled(a, f...) and its Outcomes
//	completed, failed and cancelled apart                            JoinAllSettled(a, f...) and its lists
//	leave out what was cancelled                                     s.SkipCancelled() of JoinAllSettled(a, f...)
//	best effort within 5 s                                           JoinAllSettled(a.With(Wait{Limit: 5 * time.Second, Proceed: true}), f...)
//	the first to end; the others are cancelled                       Select(a, f...)
//	the first to end; the others go on, and are handed back          Select(a.With(Wait{Losers: KeepLosers}), f...) and its Rest
//	the first to complete                                            SelectOK(a, f...)
//	n that complete                                                  JoinN(a, n, f...)
//	n that complete, or all of them if they are fewer                JoinN(a.With(Wait{Clamp: true}), n, f...)
//	n that end                                                       JoinNSettled(a, n, f...)
//	what has ended so far, without waiting                           Peek(a, f...)
//	one task                                                         Await(a, f)
//	one task, with a timeout                                         Await(a.With(Wait{Limit: 2 * time.Second}), f)
//	schedule one and wait for it                                     Run[T](a, in, queue.Task{Kind: "k"})
//	tasks of several types                                           AwaitAll(a, f, g), then Value(a, f)
//	go on although one fails                                         JoinAll(a, f, g.ContinueOn(OnError|OnTimeout))
//	a synchronization point with a merge                             Synchronize(a, Sync{M: 2, Merge: Merge{Strategy: Append}}, f...)
//	a time                                                           Sleep(a, d)
//	somebody's decision, by id                                       Await(a, Promise[T](a, "approval", time.Hour))
//	somebody's word, by name                                         Await(a.With(Wait{Limit: time.Hour}), Signal[T](a, "go"))
//	ask again, if that could not be used                             errors.As(err, &bad) of *BadSignalError, then NextSignal(a, f)
//	cancel one, many, all                                            Cancel(a, "why", f...)
//	cancel tasks of several types                                    CancelAll(a, "why", f, g)
//	start children without waiting                                   a.Start()
//	a list of children, with a queue for all                         ScheduleAll[T](a, "pages", Entry{…}, Entry{…})
//	part of the time that the agent has left                         Schedule[T](a, in, queue.Task{Kind: "k", Budget: 0.5})
//
// # How long a child goes on
//
// A child ends with its owner. One that a wait does not need any more and lets go on
// (KeepLosers, KeepPending, JoinN, SelectOK, Synchronize), and one that was only started,
// goes on until the agent returns, with a result or with an error that is not retried: what
// has not ended by then is cancelled, and its error is "Owner ended". Who needs what it
// comes to must wait for it; what is to outlive the agent is no child of it: enqueue it in
// a Step.
//
// # Errors
//
// A child that failed is a *queue.TaskFailedError, one that timed out a
// *queue.TaskTimedOutError and a context.DeadlineExceeded, one that was cancelled
// ErrTaskCancelled. A wait that came to its limit is a *WaitTimeoutError, one for a success
// that did not come an *AllTasksFailedError, one for n of them a *WaitImpossibleError.
// With Proceed a wait that came to its limit goes on with what has completed, and is a
// *WaitTimeoutError still if nothing has.
// What cannot be meant is a refusal.ErrInvalid, a task that is not the agent's ErrNotOwner;
// then nothing was changed.
//
// When Redis is away or full the agent is given back and tries again a second later;
// that spends no retry.
package agentwait
