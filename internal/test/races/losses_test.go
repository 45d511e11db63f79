package races

import (
	"slices"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// loss is a call whose reply is lost. holds is the claim that is tested, and script the call. call
// returns what the caller gets.
type loss struct {
	holds, script string
	call          func(l *lossy) any
}

// losses are all losses.
var losses = slices.Concat(lossesOfTasks, lossesOfPolicies, lossesOfAgents)

var lossesOfTasks = []loss{
	{"a task is enqueued once", "enqueue", func(l *lossy) any {
		r, err := l.caller.Enqueue(l.Context(), queue.Task{Kind: "a", Payload: []byte("p"), Timeout: time.Minute, Headers: map[string]string{"h": "v"}})
		l.named = append(l.named, r.ID)
		return answer(r, err)
	}},
	{"a worker describes itself", "describe_worker", func(l *lossy) any {
		l.running(queue.Task{Kind: "a"})
		return answer("", claim.Of(l.caller).Describe(l.Context(), 0, "w", queue.WorkerDraining, "about"))
	}},
	{"a worker is stopped once", "stop_worker", func(l *lossy) any {
		l.running(queue.Task{Kind: "a"})
		return answer("", l.caller.StopWorker(l.Context(), "w"))
	}},
	{"a list is enqueued once", "enqueue", func(l *lossy) any {
		owner := l.running(queue.Task{Kind: "owner", Timeout: time.Hour})[0]
		receipts, err := l.caller.EnqueueAll(l.Context(), []queue.Task{
			{Kind: "a", Timeout: time.Minute, QueueTimeout: time.Second}, {Kind: "b", Delay: time.Second, Priority: 3},
			{Kind: "c", ID: owner + ".1"}, {Kind: "d", ID: owner + ".2", Timeout: time.Minute},
			{Kind: "e", IdempotencyKey: "key"}, {Kind: "e", IdempotencyKey: "key"}, {Kind: "f", IdempotencyKey: "key"},
			{Kind: "g", Deadline: testclock.Start.Add(-time.Second)}, {Kind: "h", ID: owner + "x.1"},
		})
		for _, r := range receipts {
			l.named = append(l.named, r.ID)
		}
		l.named = slices.DeleteFunc(l.named, func(id string) bool { return id == "" })
		return answer(receipts, err)
	}},
	{"a known idempotency key finds its task", "enqueue", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a", IdempotencyKey: "key"})
		return answer(l.caller.Enqueue(l.Context(), queue.Task{Kind: "a", IdempotencyKey: "key"}))
	}},

	{"a fetch claims once", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a", Payload: []byte("p"), AttemptTimeout: time.Second}, queue.Task{Kind: "b", Priority: 2}, queue.Task{Kind: "c"}, queue.Task{Kind: "d"})
		return answer(claim.Of(l.caller).Fetch(l.Context(), 0, "w", ask(1, 3, time.Minute)))
	}},
	{"a fetch ends a late task once", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a", Timeout: time.Second}, queue.Task{Kind: "b"})
		l.at(2 * time.Second)
		return answer(claim.Of(l.caller).Fetch(l.Context(), 0, "w", ask(1, 1, time.Minute)))
	}},
	{"a fetch of no tasks wakes one other worker", "fetch", func(l *lossy) any {
		l.tasks(queue.Task{Kind: "a"}, queue.Task{Kind: "b"})
		return answer(claim.Of(l.caller).Fetch(l.Context(), 0, "w", ask(1, 0, time.Minute)))
	}},

	{"complete", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", Timeout: time.Minute})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Complete, Result: []byte("r")})
	}},
	{"fail spends one retry", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5, Backoff: queue.Backoff{Delay: queue.None}})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Error: "e", Code: 3})
	}},
	{"fail and wait spends one retry", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5, Backoff: queue.Backoff{Delay: queue.None}})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Error: "e", Delay: time.Second})
	}},
	{"fail of the last attempt", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Error: "e"})
	}},
	{"fail for good", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5, Backoff: queue.Backoff{Delay: queue.None}})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Class: queue.ClassFailed, Error: "e"})
	}},
	{"fail by the worker's time limit", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a", MaxRetries: 5, Backoff: queue.Backoff{Delay: queue.None}})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Fail, Class: queue.ClassTimeout})
	}},
	{"release", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Release})
	}},
	{"release and wait", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Release, Delay: time.Second})
	}},
	{"an owner is completed and its children are doomed once", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		l.tasks(queue.Task{Kind: "b", ID: id + ".1"}, queue.Task{Kind: "c", ID: id + ".2"})
		return l.settle(claim.Ask{}, queue.Outcome{ID: id, Verb: queue.Complete})
	}},
	{"all verbs in one list", "settle", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b", MaxRetries: 1, Backoff: queue.Backoff{Delay: queue.None}}, queue.Task{Kind: "c"})
		return l.settle(claim.Ask{}, queue.Outcome{ID: ids[0], Verb: queue.Complete}, queue.Outcome{ID: ids[1], Verb: queue.Fail}, queue.Outcome{ID: ids[2], Verb: queue.Release})
	}},
	{"settle fetches the next tasks once", "settle", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		l.tasks(queue.Task{Kind: "b"}, queue.Task{Kind: "c"}, queue.Task{Kind: "d"})
		return l.settle(ask(2, 2, time.Minute), queue.Outcome{ID: id, Verb: queue.Complete})
	}},
	{"settle gives a task back and fetches it again", "settle", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b", MaxRetries: 3, Backoff: queue.Backoff{Delay: queue.None}})
		return l.settle(ask(2, 2, time.Minute), queue.Outcome{ID: ids[0], Verb: queue.Release}, queue.Outcome{ID: ids[1], Verb: queue.Fail, Error: "e"})
	}},

	{"a heartbeat gives back once the tasks that the worker did not receive", "heartbeat", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b"}, queue.Task{Kind: "c", Timeout: time.Second})
		l.at(2 * time.Second)
		return answer(claim.Of(l.caller).Heartbeat(l.Context(), 0, "w", time.Minute, 1, []claim.Held{{ID: ids[0], Epoch: 1, Progress: "half"}, {ID: ids[2], Epoch: 1, Progress: "half"}, {ID: "0-nobody", Epoch: 1}}))
	}},
	{"goodbye gives back once", "heartbeat", func(l *lossy) any {
		l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b"}, queue.Task{Kind: "c", Timeout: time.Second})
		l.at(2 * time.Second)
		return answer(claim.Of(l.caller).Heartbeat(l.Context(), 0, "w", 0, 1, nil))
	}},

	{"cancel", "cancel", func(l *lossy) any {
		ids := l.running(queue.Task{Kind: "a"}, queue.Task{Kind: "b"}, queue.Task{Kind: "c", Timeout: time.Second})
		l.settle(claim.Ask{}, queue.Outcome{ID: ids[1], Verb: queue.Complete, Result: []byte("r")})
		ids = append(ids, l.tasks(queue.Task{Kind: "d"}, queue.Task{Kind: "e", Delay: time.Hour}, queue.Task{Kind: "f", ID: ids[0] + ".1"})...)
		l.at(2 * time.Second)
		return answer(l.caller.CancelAll(l.Context(), append(ids, "0-NOBODY"), "enough"))
	}},

	{"a sweep of all clocks", "sweep", func(l *lossy) any {
		owner := l.running(queue.Task{Kind: "owner", Timeout: time.Second}, queue.Task{Kind: "attempt", AttemptTimeout: time.Second}, queue.Task{Kind: "held"})[0]
		l.tasks(queue.Task{Kind: "child", ID: owner + ".1"}, queue.Task{Kind: "delayed", Delay: time.Second}, queue.Task{Kind: "queued", QueueTimeout: time.Second}, queue.Task{Kind: "keyed", IdempotencyKey: "key", Timeout: time.Second, Retention: time.Hour})
		l.at(2 * time.Minute)
		// Only the first reply says what the sweep did: a repeat has nothing to do.
		for range 4 {
			if _, err := reaper.Sweep(l.Context(), l.caller, 0, "r", 100, 500*time.Millisecond); err != nil {
				return err
			}
		}
		l.at(2 * 24 * time.Hour)
		_, err := reaper.Sweep(l.Context(), l.caller, 0, "r", 100, 500*time.Millisecond)
		return answer(nil, err)
	}},

	{"Result of a late task ends it once", "watch", func(l *lossy) any {
		id := l.tasks(queue.Task{Kind: "a", Timeout: time.Second})[0]
		l.at(2 * time.Second)
		return answer(l.caller.Result(l.Context(), id))
	}},
	{"Result of a running task returns its result", "watch", func(l *lossy) any {
		id := l.running(queue.Task{Kind: "a"})[0]
		result := make(chan any)
		go func() { result <- answer(l.caller.Result(l.Context(), id)) }()
		await.Until(l.T, "the task is watched", func() bool { return l.Record(id).Fields["watched"] != "" })
		if _, err := claim.Of(l.Q).Settle(l.Context(), 0, "w", "call", []queue.Outcome{{ID: id, Epoch: 1, Verb: queue.Complete, Result: []byte("r")}}, claim.Ask{}); err != nil {
			return err
		}
		return await.Receive(l.T, result, "Result returns")
	}},

	{"a namespace is created once", "open", func(l *lossy) any {
		l.second = redistest.Namespace(l.T)
		q, err := queue.Open(l.Context(), l.caller.Client(), queue.Config{Namespace: l.second, Partitions: 3, Library: l.library, Logger: l.Q.Logger()})
		if err != nil {
			return err
		}
		return q.Partitions()
	}},
}
