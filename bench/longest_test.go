package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/events"
	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// BenchmarkLongest measures the longest time that one script blocks Redis:
//
//	go test ./bench -run '^$' -bench Longest -timeout 1h
func BenchmarkLongest(b *testing.B) {
	figures(b, func(ctx context.Context, rdb redis.UniversalClient) (Report, error) {
		return measureLongest(ctx, rdb, 2_000_000, 5_000, 10_000)
	})
}

// longest measures the longest script of each call, beside pending tasks in queues. Waits have members.
type longest struct {
	*micro
	tasks, queues, members int
	report                 Report
}

// measureLongest measures the longest time that one script blocks Redis. Each call is as large as the Go
// packages make it, beside many pending tasks in many queues, and waits have many members. A figure
// is the longest script of a step, from SLOWLOG. That is elapsed time, so it also contains the time
// in which the machine ran other programs.
func measureLongest(ctx context.Context, rdb redis.UniversalClient, tasks, queues, members int) (Report, error) {
	l := &longest{micro: &micro{rdb: rdb}, tasks: tasks, queues: queues, members: members, report: Report{Bench: "longest"}}
	if err := l.fill(ctx); err != nil {
		return l.report, err
	}
	if err := configure(ctx, rdb, [][2]string{{"slowlog-log-slower-than", "0"}, {"slowlog-max-len", "100000"}}); err != nil {
		return l.report, err
	}
	for _, part := range []func(context.Context) error{l.ofTasks, l.ofQueues, l.ofAgents, l.ofFamilies} {
		if err := part(ctx); err != nil {
			return l.report, err
		}
	}
	return l.report, nil
}

// fill enqueues the tasks into their queues.
func (l *longest) fill(ctx context.Context) error {
	if err := l.open(ctx); err != nil {
		return err
	}
	const chunk = 10000
	for from := 0; from < l.tasks; from += chunk {
		list := tasks(min(chunk, l.tasks-from), noop)
		for i := range list {
			list[i].Queue = l.line((from + i) * l.queues / l.tasks)
		}
		if err := accepted(l.q.EnqueueAll(ctx, list)); err != nil {
			return err
		}
	}
	return nil
}

func (l *longest) line(i int) string { return "line" + strconv.Itoa(i%l.queues) }

// step runs a step and adds its longest script to the report.
func (l *longest) step(ctx context.Context, name string, step func() error) error {
	if err := l.rdb.Do(ctx, "SLOWLOG", "RESET").Err(); err != nil {
		return err
	}
	if err := step(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	calls, err := l.rdb.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return err
	}
	var most time.Duration
	for _, call := range calls {
		if slices.Contains(scriptCommands, strings.ToLower(call.Args[0])) {
			most = max(most, call.Duration)
		}
	}
	l.report.add(name, most.Seconds()*1000, "ms")
	return nil
}

// named is a step and the name of its figure.
type named struct {
	name string
	step func() error
}

func (l *longest) steps(ctx context.Context, steps ...named) error {
	for _, s := range steps {
		if err := l.step(ctx, s.name, s.step); err != nil {
			return err
		}
	}
	return nil
}

// ofTasks measures the calls of producers, workers and reapers.
func (l *longest) ofTasks(ctx context.Context) error {
	var claims []queue.Claim
	settle := func(of func(queue.Claim) queue.Outcome, n int) func() error {
		return func() error {
			var outcomes []queue.Outcome
			for _, c := range claims {
				outcomes = append(outcomes, of(c))
			}
			l.seq++
			trip, err := claim.Of(l.q).Settle(ctx, 0, who, queue.NewCall(), outcomes, claim.Ask{N: n, Seq: l.seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "busy", N: n}}})
			claims = trip.Claims
			return err
		}
	}
	fetch := func() (err error) {
		claims, err = l.fetch(ctx, "busy", 500)
		return enough(len(claims), 500, err)
	}
	held := func() error {
		var all []claim.Held
		for _, c := range claims {
			all = append(all, claim.Held{ID: c.ID, Epoch: c.Epoch, Progress: "half of it"})
		}
		_, err := claim.Of(l.q).Heartbeat(ctx, 0, who, time.Hour, 0, all)
		return err
	}
	enqueue := func(n int, one func(int) queue.Task) func() error {
		return func() error { return accepted(l.q.EnqueueAll(ctx, tasks(n, one))) }
	}
	return l.steps(ctx,
		named{"enqueue 500 of one kind", enqueue(10000, func(i int) queue.Task { t := noop(i); t.Queue = "busy"; return t })},
		named{"enqueue 500, each with headers of its own", enqueue(5000, func(i int) queue.Task { t := fullTask(i); t.Queue = "busy"; return t })},
		named{"enqueue 500, each in a queue of its own", enqueue(500, func(i int) queue.Task { t := noop(i); t.Queue = l.line(i * 7); return t })},
		named{"fetch 500", fetch},
		named{"heartbeat of 500", held},
		named{"complete 500, fetch as many as there is room for", settle(func(c queue.Claim) queue.Outcome {
			return queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: payload()}
		}, 500)},
		named{"complete 100, fetch 500", settle(func(c queue.Claim) queue.Outcome {
			return queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: payload()}
		}, 500)},
		named{"fail 500", settle(func(c queue.Claim) queue.Outcome {
			return queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Fail, Error: "no such page", Code: 404}
		}, 0)},
		named{"time out 250, each in a queue of its own", l.dueTasks(ctx)},
	)
}

// dueTasks returns a step that sweeps due tasks of many queues.
func (l *longest) dueTasks(ctx context.Context) func() error {
	return func() error {
		const n = 5000
		due := func(i int) queue.Task {
			return queue.Task{Kind: "due", Queue: l.line(i), Payload: payload(), Timeout: time.Millisecond}
		}
		if err := accepted(l.q.EnqueueAll(ctx, tasks(n, due))); err != nil {
			return err
		}
		pause(ctx, 20*time.Millisecond)
		return sweepAll(ctx, l.q, n, 1000)
	}
}

// ofQueues measures calls about queues.
func (l *longest) ofQueues(ctx context.Context) error {
	every := func() (quotas []claim.Quota) {
		for i := range l.queues {
			quotas = append(quotas, claim.Quota{Queue: l.line(i), N: 1})
		}
		return quotas
	}()
	return l.steps(ctx,
		named{"fetch 500 from all queues", func() error {
			l.seq++
			_, err := claim.Of(l.q).Fetch(ctx, 0, who, claim.Ask{N: 500, Seq: l.seq, Lease: time.Hour, Quotas: every})
			return err
		}},
		named{"look at all queues", func() error { _, err := l.q.Stats(ctx); return err }},
		named{"limit a queue, count what runs, sweep", func() error {
			if _, err := l.q.LimitRunning(ctx, l.line(0), 100); err != nil {
				return err
			}
			for range 20 {
				if _, err := reaper.Sweep(ctx, l.q, 0, who, 100, fallback); err != nil {
					return err
				}
			}
			return nil
		}},
		named{"drain a queue", func() error {
			big := func(i int) queue.Task { t := noop(i); t.Queue = "drained"; return t }
			if err := accepted(l.q.EnqueueAll(ctx, tasks(20000, big))); err != nil {
				return err
			}
			_, err := l.q.Drain(ctx, "drained", "measured")
			return err
		}},
		named{"cancel 5,000", func() error {
			receipts, err := l.q.EnqueueAll(ctx, tasks(5000, noop))
			if err := accepted(receipts, err); err != nil {
				return err
			}
			var ids []string
			for _, r := range receipts {
				ids = append(ids, r.ID)
			}
			_, err = l.q.CancelAll(ctx, ids, "measured")
			return err
		}},
		named{"read events", func() error {
			_, err := events.Read(ctx, l.q, events.Oldest, 1000, 0)
			return err
		}},
	)
}

// family enqueues an agent, claims it, and enqueues its many children. It returns the claim and
// the children's ids.
func (l *longest) family(ctx context.Context, name string) (queue.Claim, []string, error) {
	a := agent(0)
	a.Queue = name
	if err := accepted(l.q.EnqueueAll(ctx, []queue.Task{a})); err != nil {
		return queue.Claim{}, nil, err
	}
	claims, err := l.fetchAll(ctx, name, 1)
	if err != nil {
		return queue.Claim{}, nil, err
	}
	children := tasks(l.members, func(i int) queue.Task {
		return queue.Task{ID: claims[0].ID + "." + strconv.Itoa(i+1), Queue: name + "-children", Kind: "member", Payload: payload(), Timeout: time.Hour}
	})
	var ids []string
	for _, c := range children {
		ids = append(ids, c.ID)
	}
	return claims[0], ids, accepted(l.q.EnqueueAll(ctx, children))
}

// waitFor returns a suspension of the agent on all of ids, each with its own limit.
func waitFor(a queue.Claim, ids []string, w claim.Wait) claim.Suspension {
	w.Entry, w.Digest, w.Label, w.MaxMembers = 1, "wait", "its children", len(ids)
	for _, id := range ids {
		w.Members = append(w.Members, claim.Member{ID: id, Patience: 30 * time.Minute})
	}
	return claim.Suspension{Agent: a.ID, Epoch: a.Epoch, Worker: who, Wait: w}
}

// ofAgents measures the calls about an agent that waits for all of its many children, until it ends.
func (l *longest) ofAgents(ctx context.Context) error {
	var a queue.Claim
	var ids []string
	return l.steps(ctx,
		named{"enqueue 500 children", func() (err error) { a, ids, err = l.family(ctx, "all"); return err }},
		named{"suspend for all of them", func() error {
			_, err := claim.Of(l.q).Suspend(ctx, waitFor(a, ids, claim.Wait{Mode: queue.WaitAll}))
			return err
		}},
		named{"explain the agent", func() error { _, err := inspect.Explain(ctx, l.q, a.ID); return err }},
		named{"complete all members, wake the agent", func() error {
			for done := 0; done < l.members; {
				claims, err := l.fetch(ctx, "all-children", 500)
				if err := enough(len(claims), min(500, l.members-done), err); err != nil {
					return err
				}
				if err := l.settle(ctx, claims); err != nil {
					return err
				}
				done += len(claims)
			}
			return nil
		}},
		named{"fetch and recall the woken agent", func() error {
			woken, err := l.fetchAll(ctx, "all", 1)
			if err != nil {
				return err
			}
			a = woken[0]
			_, err = claim.Of(l.q).Recall(ctx, a.ID)
			return err
		}},
		named{"read all of its children", func() error { _, err := claim.Of(l.q).Results(ctx, a.ID, ids); return err }},
		named{"complete the agent, sweep its children", func() error { return l.endFamily(ctx, func() error { return l.settle(ctx, []queue.Claim{a}) }) }},
	)
}

// ofFamilies measures ends that also end many children.
func (l *longest) ofFamilies(ctx context.Context) error {
	var steps []named
	for _, c := range []struct {
		name string
		wait claim.Wait
	}{
		{"wake by the first of many, cancel the losers", claim.Wait{Mode: queue.WaitAny, CancelLosers: true}},
		{"a wait runs out, its members are cancelled", claim.Wait{Mode: queue.WaitAll, Limit: 100 * time.Millisecond}},
	} {
		steps = append(steps, named{c.name, func() error { return l.loseMany(ctx, c.wait) }})
	}
	return l.steps(ctx, append(steps, named{"cancel an agent, sweep its children", func() error {
		a, _, err := l.family(ctx, "cancelled")
		if err != nil {
			return err
		}
		return l.endFamily(ctx, func() error { _, err := l.q.Cancel(ctx, a.ID, "measured"); return err })
	}})...)
}

// loseMany ends a wait while most of its members have not ended.
func (l *longest) loseMany(ctx context.Context, w claim.Wait) error {
	name := "lose" + string(w.Mode)
	a, ids, err := l.family(ctx, name)
	if err != nil {
		return err
	}
	if _, err := claim.Of(l.q).Suspend(ctx, waitFor(a, ids, w)); err != nil {
		return err
	}
	if w.Limit == 0 {
		claims, err := l.fetch(ctx, name+"-children", 1)
		if err := enough(len(claims), 1, err); err != nil {
			return err
		}
		if err := l.settle(ctx, claims); err != nil {
			return err
		}
	}
	pause(ctx, w.Limit+20*time.Millisecond)
	return l.endFamily(ctx, func() error { return nil })
}

// endFamily calls end, and then sweeps until nothing is due.
func (l *longest) endFamily(ctx context.Context, end func() error) error {
	if err := end(); err != nil {
		return err
	}
	for {
		s, err := reaper.Sweep(ctx, l.q, 0, who, 1000, fallback)
		if err != nil || s.Wait > 0 {
			return err
		}
	}
}
