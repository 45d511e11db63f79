package races

import (
	"time"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// everything returns a task that uses all options of tasks that workers run.
func everything() queue.Task {
	return queue.Task{Kind: "a", Timeout: time.Minute, QueueTimeout: time.Second, AttemptTimeout: 10 * time.Second, OnTimeout: queue.OnTimeoutRetry,
		WarnAt: 0.5, CancelGrace: 5 * time.Second, MaxRetries: 3,
		Backoff:        queue.Backoff{Delay: time.Second, Exponential: true, Max: time.Minute},
		Hooks:          queue.Hooks{OnSuccess: queue.Hook{Kind: "s"}, OnFailure: queue.Hook{Kind: "f", Queue: "hooks"}, OnCancel: queue.Hook{Kind: "c"}},
		IdempotencyKey: "key", IdempotencyScope: queue.UntilFinished}
}

// lossesOfPolicies are about retries, hooks, promises and the controls of queues.
var lossesOfPolicies = []loss{
	{"a task with all policies is enqueued once", "enqueue", func(l *lossy) any {
		r, err := l.caller.Enqueue(l.Context(), everything())
		l.named = append(l.named, r.ID)
		return answer(r, err)
	}},
	{"a promise and a timer are enqueued once", "enqueue", func(l *lossy) any {
		receipts, err := l.caller.EnqueueAll(l.Context(), []queue.Task{{Kind: "p", Promise: true, Timeout: time.Minute}, {Kind: "t", Timer: true, Delay: time.Second}})
		for _, r := range receipts {
			l.named = append(l.named, r.ID)
		}
		return answer(receipts, err)
	}},
	{"a key whose task has ended is used once again", "enqueue", func(l *lossy) any {
		over := queue.Task{Kind: "a", Timeout: time.Second, IdempotencyKey: "key", IdempotencyScope: queue.UntilFinished}
		l.tasks(over)
		l.at(2 * time.Second)
		r, err := l.caller.Enqueue(l.Context(), over)
		l.named = append(l.named, r.ID)
		return answer(r, err)
	}},
	{"a key whose window is over is used once again", "enqueue", func(l *lossy) any {
		window := queue.Task{Kind: "a", IdempotencyKey: "key", IdempotencyScope: queue.ForWindow, IdempotencyWindow: time.Second}
		l.tasks(window)
		l.at(2 * time.Second)
		r, err := l.caller.Enqueue(l.Context(), window)
		l.named = append(l.named, r.ID)
		return answer(r, err)
	}},

	{"a fetch spends a rate once", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a"}, queue.Task{Kind: "b"}, queue.Task{Kind: "c"})
		if _, err := l.Q.LimitRate(l.Context(), "default", queue.Rate{N: 2, Per: time.Minute}); err != nil {
			return err
		}
		return answer(claim.Of(l.caller).Fetch(l.Context(), 0, "w", ask(1, 3, time.Minute)))
	}},
	{"a fetch frees a key once", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a", IdempotencyKey: "key", IdempotencyScope: queue.UntilStarted})
		return answer(claim.Of(l.caller).Fetch(l.Context(), 0, "w", ask(1, 3, time.Minute)))
	}},

	{"fail with a back-off spends one retry", "settle", func(l *lossy) any {
		id := l.running(everything())[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Error: "e", Code: 3})
	}},
	{"fail by a verdict of an expression", "settle", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a", MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}, Retry: "tasks.a.code == 1"}, queue.Task{Kind: "a", MaxRetries: 2, Backoff: queue.Backoff{Delay: queue.None}, Retry: "tasks.a.code == 1"})
		return l.settle(claim.Ask{}, queue.Outcome{ID: ids[0], Verb: queue.Fail, Class: queue.ClassFailed, Code: 1, Retry: "retry"},
			queue.Outcome{ID: ids[1], Verb: queue.Fail, Retry: "fail: no answer"})
	}},
	{"fail by the worker's time limit spends one retry", "settle", func(l *lossy) any {
		id := l.running(everything())[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Class: queue.ClassTimeout})
	}},
	{"a report after the attempt's limit spends one retry", "settle", func(l *lossy) any {
		id := l.running(everything())[0]
		l.at(11 * time.Second)
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Complete})
	}},
	{"complete enqueues one hook", "settle", func(l *lossy) any {
		id := l.running(everything())[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Complete, Result: []byte("r")})
	}},
	{"complete in the grace cancels once", "settle", func(l *lossy) any {
		id := l.running(everything())[0]
		if _, err := l.Q.Cancel(l.Context(), id, "enough"); err != nil {
			return err
		}
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Complete, Result: []byte("r")})
	}},

	{"the reply to a heartbeat in the grace says stop", "heartbeat", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a", CancelGrace: 5 * time.Second}, queue.Task{Kind: "b", AttemptTimeout: time.Second, MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}, OnTimeout: queue.OnTimeoutRetry})
		if _, err := l.Q.Cancel(l.Context(), ids[0], "enough"); err != nil {
			return err
		}
		l.at(2 * time.Second)
		return answer(claim.Of(l.caller).Heartbeat(l.Context(), 0, "w", time.Minute, 1, []claim.Held{{ID: ids[0], Epoch: 1, Progress: "half"}, {ID: ids[1], Epoch: 1, Progress: "half"}}))
	}},
	{"goodbye in the grace cancels once", "heartbeat", func(l *lossy) any {
		id := l.running(everything())[0]
		if _, err := l.Q.Cancel(l.Context(), id, "enough"); err != nil {
			return err
		}
		return answer(claim.Of(l.caller).Heartbeat(l.Context(), 0, "w", 0, 1, nil))
	}},

	{"a cancellation with a grace begins it once", "cancel", func(l *lossy) any {
		ids := l.running(everything())
		return answer(l.caller.CancelAll(l.Context(), ids, "enough"))
	}},
	{"a cancellation enqueues one hook", "cancel", func(l *lossy) any {
		ids := l.tasks(everything())
		return answer(l.caller.CancelAll(l.Context(), ids, "enough"))
	}},

	{"a promise is resolved once", "resolve", func(l *lossy) any {
		id := l.tasks(queue.Task{Kind: "p", Promise: true, Timeout: time.Minute, Hooks: queue.Hooks{OnSuccess: queue.Hook{Kind: "s"}}})[0]
		return answer(l.caller.Resolve(l.Context(), id, []byte("r")))
	}},
	{"a promise is rejected once", "resolve", func(l *lossy) any {
		id := l.tasks(queue.Task{Kind: "p", Promise: true, Timeout: time.Minute, Hooks: queue.Hooks{OnFailure: queue.Hook{Kind: "f"}}})[0]
		return answer(l.caller.Reject(l.Context(), id, "no"))
	}},
	{"a late promise is ended once", "resolve", func(l *lossy) any {
		id := l.tasks(queue.Task{Kind: "p", Promise: true, Timeout: time.Second})[0]
		l.at(2 * time.Second)
		return answer(l.caller.Resolve(l.Context(), id, []byte("r")))
	}},
	{"a timer is resolved before its time once", "resolve", func(l *lossy) any {
		id := l.tasks(queue.Task{Kind: "t", Timer: true, Delay: time.Minute})[0]
		return answer(l.caller.Resolve(l.Context(), id, []byte("r")))
	}},

	{"a record is deleted once", "delete", func(l *lossy) any { // a repeat finds no record
		ids := l.tasks(hookless(), hookless())
		if _, err := l.Q.CancelAll(l.Context(), ids, ""); err != nil {
			return err
		}
		l.at(time.Hour)
		_, err := l.caller.DeleteAll(l.Context(), ids[:1])
		return answer(nil, err)
	}},
	{"the retention of a record is shortened once", "delete", func(l *lossy) any {
		ids := l.tasks(hookless(), hookless())
		if _, err := l.Q.CancelAll(l.Context(), ids, ""); err != nil {
			return err
		}
		return answer(l.caller.DeleteAll(l.Context(), ids))
	}},

	{"a repair", "repair", func(l *lossy) any {
		owner := l.running(queue.Task{Kind: "a", Timeout: time.Hour}, queue.Task{Kind: "b", IdempotencyKey: "key"})[0]
		l.tasks(queue.Task{Kind: "c"}, queue.Task{Kind: "c", ID: owner + ".1"})
		l.Redis.Del(l.Context(), l.Key("ready:default"), l.Key("children:"+owner), l.Key("deadlines"), l.Key("claims:w"), l.Key("idem"))
		found, err := inspect.Audit(l.Context(), l.Q)
		if err != nil {
			return err
		}
		return answer(inspect.Repair(l.Context(), l.caller, found))
	}},

	{"a queue is paused", "control", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a"}, queue.Task{Kind: "b"})
		return answer(l.caller.Pause(l.Context(), "default"))
	}},
	{"a queue is resumed and wakes one worker", "control", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a"}, queue.Task{Kind: "b"})
		if _, err := l.Q.Pause(l.Context(), "default"); err != nil {
			return err
		}
		return answer(l.caller.Resume(l.Context(), "default"))
	}},
	{"a queue is limited", "control", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a"}, queue.Task{Kind: "b"})
		if _, err := l.caller.LimitRate(l.Context(), "default", queue.Rate{N: 1, Per: time.Second}); err != nil {
			return err
		}
		l.fetch("w", 1, 2, time.Minute) // fetches one task, and then the bucket is empty
		return answer(l.caller.LimitRunning(l.Context(), "default", 2))
	}},

	{"a line is drained once", "drain", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a"}, queue.Task{Kind: "b", Timeout: time.Second}, queue.Task{Kind: "c", Hooks: queue.Hooks{OnCancel: queue.Hook{Kind: "h", Queue: "hooks"}}},
			queue.Task{Kind: "d", Delay: time.Hour})
		l.at(2 * time.Second)
		return answer(l.caller.Drain(l.Context(), "default", "enough"))
	}},

	{"a kind is defined", "define", func(l *lossy) any {
		return answer(nil, l.caller.DefineKind(l.Context(), "a", queue.Defaults{Timeout: time.Minute, MaxRetries: 2}))
	}},

	{"a definition of a flow is stored", "put_flow", func(l *lossy) any {
		stored, err := flow.Put(l.Context(), l.caller, []byte(`{"id":"f","version":"1","nodes":[{"id":"a","action_id":"x"}],"actions":[{"id":"x","kind":"k"}]}`))
		return answer(stored.Version, err) // a repeat does not say that it is new
	}},

	{"a namespace is configured", "configure", func(l *lossy) any {
		return answer(nil, l.caller.Configure(l.Context(), queue.Settings{Events: queue.EventsNone, EventMiB: 9, Figures: "off"}))
	}},

	{"a sweep of retries, timers, warnings and hooks", "sweep", func(l *lossy) any {
		l.running(everything())
		l.tasks(queue.Task{Kind: "t", Timer: true, Delay: time.Second, Hooks: queue.Hooks{OnSuccess: queue.Hook{Kind: "s"}}},
			queue.Task{Kind: "w", Deadline: testclock.Start.Add(20 * time.Second), WarnAt: 0.5},
			queue.Task{Kind: "h", Timeout: 3 * time.Second, Hooks: queue.Hooks{OnTimeout: queue.Hook{Kind: "t"}}},
			queue.Task{Kind: "k", IdempotencyKey: "window", IdempotencyScope: queue.ForWindow, IdempotencyWindow: time.Second})
		if _, err := l.Q.LimitRate(l.Context(), "default", queue.Rate{N: 1, Per: time.Second}); err != nil {
			return err
		}
		for _, at := range []time.Duration{11 * time.Second, 15 * time.Second} {
			l.at(at)
			for range 4 {
				if _, err := reaper.Sweep(l.Context(), l.caller, 0, "r", 100, 500*time.Millisecond); err != nil {
					return err
				}
			}
		}
		return nil
	}},
}

// hookless is a task whose record waits for no hook.
func hookless() queue.Task {
	task := everything()
	task.Hooks = queue.Hooks{}
	return task
}
